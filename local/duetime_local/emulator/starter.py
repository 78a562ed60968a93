"""Starts the embedded AWS with the additions that this folder's modules contain.

The emulator's own Python runs this module, so it imports only the standard library, the emulator and modules in this
folder.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

LAYERS = "layers"
"""The folder for unpacked layers, inside the server's temporary folder."""


def main() -> None:
    """Serve requests until the process is ended."""
    from ministack import app  # type: ignore[import-not-found] # noqa: PLC0415 - not there where the tests run
    from ministack.core import lambda_runtime  # type: ignore[import-not-found] # noqa: PLC0415 - same

    # These functions are replaced before other modules import them by name.
    _share_layers(lambda_runtime)
    _end_gently(lambda_runtime)
    _collect_logs_at_once(lambda_runtime)
    from ministack.services import apigateway  # type: ignore[import-not-found] # noqa: PLC0415 - same

    _limit_requests(apigateway)
    from ministack.services import lambda_svc  # noqa: PLC0415 - same

    _poll_streams_apart(lambda_svc)
    from ministack.services import dynamodb  # noqa: PLC0415 - same

    dynamodb._batch_execute_statement = _module_beside("batch_inserts").BatchInserts(dynamodb).execute  # noqa: SLF001
    _module_beside("table_speed").speed_up(dynamodb)
    app.main()


def _limit_requests(apigateway: Any) -> None:  # noqa: ANN401 - a module of the emulator
    throttle = _module_beside("http_throttle")
    # The emulator calls this function in the scope of the API's account and Region, which is needed to find the stages.
    apigateway._handle_execute_in_scope = throttle.gated(  # noqa: SLF001 - the emulator has no hook for this
        throttle.limited(apigateway._handle_execute_in_scope),  # noqa: SLF001 - same
        lambda api_id, stage: apigateway._stages.get(api_id, {}).get(stage, {}),  # noqa: SLF001 - same
    )


def _poll_streams_apart(lambda_svc: Any) -> None:  # noqa: ANN401 - a module of the emulator
    poller = _module_beside("stream_poller").StreamPoller(lambda_svc._poll_dynamodb_streams)  # noqa: SLF001 - same
    lambda_svc._poll_dynamodb_streams = poller.start  # noqa: SLF001 - same


def _share_layers(lambda_runtime: Any) -> None:  # noqa: ANN401 - a module of the emulator
    folder = Path(os.environ["TMPDIR"]) / LAYERS
    layers = _module_beside("shared_layers").SharedLayers(folder, _archive_of)
    start = lambda_runtime.Worker._spawn  # noqa: SLF001 - same
    lambda_runtime.Worker._spawn = lambda process: layers.start(start, process)  # noqa: SLF001 - same


def _archive_of(layer: object) -> bytes | None:
    # This module is imported late, because importing it restores the state that an earlier server saved.
    from ministack.services import lambda_svc  # noqa: PLC0415 - see above

    archive: bytes | None = lambda_svc._resolve_layer_zip(layer)  # noqa: SLF001 - the emulator has no hook for this
    return archive


def _end_gently(lambda_runtime: Any) -> None:  # noqa: ANN401 - a module of the emulator
    ends = _module_beside("shared_layers").GentleEnd(lambda_runtime.kill_workers, lambda_runtime.release_worker)
    lambda_runtime.kill_workers = ends.end
    lambda_runtime.release_worker = ends.release


def _collect_logs_at_once(lambda_runtime: Any) -> None:  # noqa: ANN401 - a module of the emulator
    worker = lambda_runtime.Worker
    logs = _module_beside("function_logs").FunctionLogs(worker._drain_stderr_bounded)  # noqa: SLF001 - it has no hook
    # These are plain functions, because bound methods would not receive the process as an argument.
    worker._read_stderr = lambda process: logs.read(process)  # noqa: PLW0108, SLF001 - see the line above
    worker._drain_stderr_bounded = lambda process, **waits: logs.collect(process, **waits)  # noqa: PLW0108, SLF001 - same


def _module_beside(name: str) -> ModuleType:
    """Import a module from this folder.

    The folder is not on the import path, because its modules would hide other modules of the same name.
    """
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None  # noqa: S101 - a path that ends in .py has one
    assert spec.loader is not None  # noqa: S101 - same
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
