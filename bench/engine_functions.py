"""Functions of a benchmark's own in the embedded AWS, beside those of the stack or without it."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_local.emulator import Emulator


def create_function(
    engine: Emulator, name: str, handler: str, files: Mapping[str, str], environ: Mapping[str, str]
) -> None:
    """Create a Lambda function.

    Args:
        engine: where it will run.
        name: by which it is invoked.
        handler: `module.function`.
        files: the source text of each of its files, by its path.
        environ: its environment variables.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    engine.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler=handler,
        Role="arn:aws:iam::000000000000:role/bench",
        Timeout=60,
        Code={"ZipFile": packed.getvalue()},
        Environment={"Variables": dict(environ)},
    )
