"""The log lines of attempts on this machine: the reader of `duetime logs`, pointed at the embedded AWS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from duetime_client.commands.logs import reader_of
from duetime_local.emulator import Emulator

if TYPE_CHECKING:
    from duetime_client.logs import LogFilter, LogReader

STACK = "duetime-local"


def reader_at(aws_endpoint_url: str, wanted: LogFilter) -> LogReader:
    """What reads the lines of the stack whose embedded AWS has this address."""
    os.environ.update(Emulator(urlsplit(aws_endpoint_url).port or 0, Path()).environ)
    return reader_of(STACK, wanted)
