"""Reads the console's built files once, when the function starts."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from pathlib import Path

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_PACKED = ".gz"
_HASHED = re.compile(r"-[A-Z0-9]{8}\.(js|css)")


@frozen
class File:
    """The uncompressed and the gzipped content of a file."""

    name: str
    content: bytes
    packed: bytes

    @property
    def content_type(self) -> str:
        """The file's media type."""
        return CONTENT_TYPES[f".{self.name.rpartition('.')[2]}"]

    @property
    def etag(self) -> str:
        """The entity tag for the content."""
        return f'"{sha256(self.content).hexdigest()[:16]}"'

    @property
    def is_hashed(self) -> bool:
        """Whether the name contains a hash of the content."""
        return _HASHED.search(self.name) is not None


def read_files(folder: Path) -> dict[str, File]:
    """The files in a folder and their gzipped copies, by name."""
    plain = [path for path in sorted(folder.glob("*")) if path.suffix != _PACKED]
    return {
        path.name: File(path.name, path.read_bytes(), path.with_name(f"{path.name}{_PACKED}").read_bytes())
        for path in plain
    }
