"""Log records without secrets: libraries that speak to the outside log what they send."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

# Their debug records show headers as they come, before anybody can know what of them is secret.
CLIENTS: Final = frozenset(
    {"aiohttp", "anthropic", "h2", "hpack", "httpcore", "httpcore2", "httpx", "httpx2", "mcp", "openai"}
    | {"requests", "urllib3", "vcr", "websockets"}
)
LEFT_OUT: Final = "(left out: it may show what is secret)"


@contextmanager
def scrubbed_logs(scrub: Callable[[str], str]) -> Iterator[None]:
    """Put the text of every log record through `scrub`, inside; debug records of HTTP and MCP clients have none."""
    make = logging.getLogRecordFactory()

    def made(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if record.levelno < logging.INFO and record.name.partition(".")[0] in CLIENTS:
            record.msg, record.args, record.exc_info = LEFT_OUT, None, None
            return record
        record.msg, record.args = scrub(_text(record)), None
        if record.exc_info and record.exc_info[1] is not None:
            # What handlers print in place of a traceback of their own.
            record.exc_text = scrub("".join(traceback.format_exception(record.exc_info[1])).rstrip())
        return record

    logging.setLogRecordFactory(made)
    try:
        yield
    finally:
        logging.setLogRecordFactory(make)


def _text(record: logging.LogRecord) -> str:
    """The message, or what there is of it: who logs it wrongly is told so by `logging` itself."""
    try:
        return record.getMessage()
    except Exception:
        return f"{record.msg} {record.args}"
