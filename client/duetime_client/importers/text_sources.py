"""Reads text files up to a maximum size."""

from __future__ import annotations

import sys
from pathlib import Path

from duetime_client.importers.draft import Source

MOST_BYTES = 4_000_000
STANDARD_INPUT = "-"


class SourceUnreadable(Exception):
    """A file cannot be read, or cannot be parsed in its expected format.

    Attributes:
        line: The line of the error; 0 if unknown.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def read_source(path: str) -> Source:
    """Read a file, or standard input if the path is `-`.

    Raises:
        SourceUnreadable: The file is not UTF-8 text, is too large, or cannot be opened.
    """
    try:
        if path == STANDARD_INPUT:
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SourceUnreadable(f"cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise SourceUnreadable(f"is larger than {MOST_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceUnreadable(f"is not text in UTF-8 (byte {error.start})") from error
    if "\0" in text:
        raise SourceUnreadable("is binary: it has a byte 0")
    return Source(path, text)
