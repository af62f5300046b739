"""Logs: one JSON object per line on stderr, without any text that a client sent.

Messages of exceptions may quote a request, so only the class and the frames of an exception are
logged.
"""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.stdlib import ProcessorFormatter

Event = MutableMapping[str, Any]


def configure() -> None:
    """Write the logs of this process, including uvicorn's, as JSON."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        frames_only,
    ]
    structlog.configure(
        processors=[*shared, ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)


def frames_only(_: Any, __: str, event: Event) -> Event:
    """Reduce an exception to its class and the lines of code it passed through."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    if isinstance(info, tuple):
        info = info[1]
    if isinstance(info, BaseException):
        event["exception"] = type(info).__name__
        event["frames"] = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(info.__traceback__)
        ]
    return event
