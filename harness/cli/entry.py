"""Where the installed command begins: Ctrl-C while it is still being imported ends it as it does later.

Next to nothing is imported before: Python itself answers Ctrl-C there, with a traceback.
"""

import sys

from harness.cli.ctrl_c import is_interrupt

_INTERRUPTED = 3  # NOT_JUDGED of `harness.cli.exit_code`, which imports click


def main() -> None:
    """Run the command with the arguments of this process, and leave with its exit code."""
    try:
        from harness.cli.main import main as command

        command()
    except BaseException as error:
        if not is_interrupt(error):
            raise
        sys.stderr.write("interrupted\n")
        sys.exit(_INTERRUPTED)
