"""Entry point of the installed command. It handles Ctrl-C that comes while the command is still being imported.

It imports almost nothing itself: during its own imports Python would answer Ctrl-C with a traceback.
"""

import sys

from harness.ctrl_c import is_interrupt

_INTERRUPTED = 3  # NOT_JUDGED of `harness.cli.output`, which imports click


def main() -> None:
    """Run the command with the arguments of this process, and exit with its exit code."""
    try:
        from harness.cli.main import main as command

        command()
    except BaseException as error:
        if not is_interrupt(error):
            raise
        sys.stderr.write("interrupted\n")
        sys.exit(_INTERRUPTED)
