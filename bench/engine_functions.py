"""Creates the additional Lambda functions that benchmarks need in the embedded AWS."""

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
        engine: the embedded AWS in which the function runs.
        name: the function's name.
        handler: the handler, as `module.function`.
        files: the source text of each of the function's files, by path.
        environ: the function's environment variables.
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
