"""Recognition of Ctrl-C in exceptions. This module imports nothing, since Ctrl-C may come during any import."""


def is_interrupt(error: BaseException | None) -> bool:
    """True if Ctrl-C caused this error. Python 3.11 turns it into a RuntimeError while a class is being created."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or is_interrupt(error.__cause__))


_RAISE_FROM_SIGNALS = ("asyncio.runners", "signal")


def is_from_signal(error: KeyboardInterrupt) -> bool:
    """True if a handler of a signal raised this error, and not user code."""
    trace, module = error.__traceback__, ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next
    return module in _RAISE_FROM_SIGNALS or module.startswith("harness.")
