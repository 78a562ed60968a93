"""Reloads the user's handlers in a running stack when their files are saved, without another deployment."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from duetime_cdk.environments import LOCAL_STACK
from duetime_cdk.errors import NotDeployable
from duetime_cdk.layers import build
from duetime_local.cloud_assembly import packed
from duetime_local.deployment import BUCKET, HANDLERS, TYPES, layer_resource
from duetime_local.emulator.lambda_warm_up import start_one
from duetime_local.project import further_packages, handlers_package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from duetime_cdk.layers.build import Layer
    from duetime_local.deployment import Deployment
    from duetime_local.emulator import Emulator

POLL_SECONDS = 0.1
"""Seconds between checks of the files; a save is complete when two successive checks find the same files."""

Signature = frozenset[tuple[str, int, int]]
"""The packages' files, each with its modification time and size."""


def built() -> dict[str, Layer]:
    """Build layers from the current packages, and return the layers by their names in the stack.

    Raises:
        NotDeployable: a package cannot be imported, or its requirements cannot be installed.
    """
    target, own, further = LOCAL_STACK.target, handlers_package(), further_packages()
    types = build.types_layer(target, own, packages=further)
    packages = {f"{HANDLERS}-{name}": build.handlers_layer(target, folder) for name, folder in further.folders.items()}
    return {HANDLERS: build.handlers_layer(target, own), TYPES: types, **packages}


def folders() -> list[Path]:
    """Return the folders of all handlers packages.

    Raises:
        HandlersNotFound: the project has no handlers package, or its stack has not been synthesized yet.
    """
    return [handlers_package(), *further_packages().folders.values()]


def signature(*folders: Path) -> Signature:
    """Return a value that changes whenever a file in the packages or a package's requirements file is saved."""
    files = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    found = set()
    for path in [*files, *(folder.parent / "requirements.txt" for folder in folders)]:
        try:
            status = path.stat()
        except OSError:
            # An editor may be replacing the file.
            continue
        if path.is_file():
            found.add((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(found)


class Versions(Protocol):
    """The versions of the layers with handlers that a stack's functions use."""

    def publish(self, layers: Mapping[str, Layer], /) -> None:
        """Switch the functions to these layers; running attempts continue, and new attempts use the new layers."""

    def start_worker(self) -> None:
        """Start a process with the current version, so that the next attempt need not wait for the start."""


@dataclass(slots=True)
class HandlerVersions:
    """The versions of the layers with handlers that a stack's functions use."""

    emulator: Emulator
    deployed: Deployment
    used: Mapping[str, Layer]

    def publish(self, layers: Mapping[str, Layer]) -> None:
        """Switch the functions to these layers; running attempts continue, and new attempts use the new layers."""
        functions = self.emulator.client("lambda")
        replacements: dict[str, str] = {}
        for part, layer in layers.items():
            name = layer_resource(self.deployed.template, part)
            content = packed(layer.folder)
            # Unchanged layers are kept. The list of types rarely changes, so the API's processes can usually continue.
            if name is None or (part in self.used and content == packed(self.used[part].folder)):
                continue
            key = f"{layer.fingerprint}.zip"
            self.emulator.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content)
            # The ARNs of a layer's versions differ only in the version number.
            layer_name = self.deployed.ids[name].rsplit(":", 1)[0]
            version = functions.publish_layer_version(
                LayerName=layer_name.rsplit(":", 1)[-1], Content={"S3Bucket": BUCKET, "S3Key": key}
            )
            replacements[layer_name] = version["LayerVersionArn"]
        for function in functions.list_functions()["Functions"]:
            used = [layer["Arn"] for layer in function.get("Layers", ())]
            wanted = [replacements.get(arn.rsplit(":", 1)[0], arn) for arn in used]
            if wanted != used:
                functions.update_function_configuration(FunctionName=function["FunctionName"], Layers=wanted)
        self.used = layers

    def start_worker(self) -> None:
        """Start a process with the current version, so that the next attempt need not wait for the start."""
        start_one(self.emulator, self.deployed.outputs["WorkerFunctionName"])


class Reloader:
    """Publishes the packages after each save.

    If the packages cannot be built, the error is shown, and the last good version stays in use.
    """

    def __init__(
        self,
        versions: Versions,
        show_reloaded: Callable[[float], None],
        show_broken: Callable[[str], None],
        *,
        build_layers: Callable[[], Mapping[str, Layer]] = built,
        watched: Sequence[Path] = (),
        seen: Signature | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._versions = versions
        self._show_reloaded = show_reloaded
        self._show_broken = show_broken
        self._build = build_layers
        self._folders = watched or folders()
        self._sleep = sleep
        self._seen = signature(*self._folders) if seen is None else seen

    def check(self) -> None:
        """Publish the packages if a file has changed since the last check."""
        now = signature(*self._folders)
        if now == self._seen:
            return
        began = time.monotonic()
        while (later := self._later()) != now:
            now = later
        self._seen = now
        try:
            layers = self._build()
        except (NotDeployable, OSError) as broken:
            # If a file is replaced during the build, the next check finds this as another change.
            self._show_broken(str(broken))
            return
        self._versions.publish(layers)
        self._show_reloaded(time.monotonic() - began)
        self._versions.start_worker()

    def run(self) -> None:
        """Check the files repeatedly; this method never returns."""
        while True:
            self._sleep(POLL_SECONDS)
            self.check()

    def _later(self) -> Signature:
        """Wait a moment and return the files, so that several files saved together count as one change."""
        self._sleep(POLL_SECONDS / 2)
        return signature(*self._folders)
