"""What Ctrl-C is, whatever has become of it. Nothing outside is imported here: it may come at any time."""


def is_interrupt(error: BaseException | None) -> bool:
    """True if Ctrl-C is behind an error: a class that is being made turns it into a RuntimeError (Python 3.11)."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or is_interrupt(error.__cause__))
