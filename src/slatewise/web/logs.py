"""Logs as one JSON object per line on stderr, for log collectors."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from typing import Any

LOGGERS = ("slatewise.serve", "slatewise.web", "uvicorn.error", "asyncio")


class JsonLines(logging.Formatter):
    """Time, level, event, process, the caller's ``extra={"fields": {...}}``, and a traceback.

    Examples
    --------
    >>> record = logging.LogRecord("slatewise.serve", logging.INFO, "", 0, "ready", None, None)
    >>> sorted(json.loads(JsonLines().format(record)))
    ['event', 'level', 'logger', 'process', 'time']
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "time": f"{clock}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            "process": os.getpid(),
            **vars(record).get("fields", {}),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def write_logs() -> None:
    """Write the logs of the service, the guard and the server to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name.startswith("slatewise") else logging.WARNING)
