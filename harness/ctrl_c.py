"""Recognition of Ctrl-C in exceptions. This module imports nothing, since Ctrl-C may come during any import."""


def is_interrupt(error: BaseException | None) -> bool:
    """True if Ctrl-C caused this error. Python 3.11 turns it into a RuntimeError while a class is being created."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or is_interrupt(error.__cause__))
