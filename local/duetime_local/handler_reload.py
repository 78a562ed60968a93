"""The user's package of handlers in a stack that runs: a saved change is there without another deployment."""

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
from duetime_local.project import handlers_package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from duetime_cdk.layers.build import Layer
    from duetime_local.deployment import Deployment
    from duetime_local.emulator import Emulator

POLL_SECONDS = 0.1
"""How often the files are looked at; twice the same is a save that is complete."""

Signature = frozenset[tuple[str, int, int]]
"""The files of the package, with the time and size of each."""


def built() -> dict[str, Layer]:
    """The layers of the package as it is now, by the part of the stack that they are.

    Raises:
        NotDeployable: it cannot be imported, or what it needs cannot be installed.
    """
    target = LOCAL_STACK.target
    types = build.types_layer(target, handlers_package())
    return {HANDLERS: build.handlers_layer(target, handlers_package()), TYPES: types}


def signature(folder: Path) -> Signature:
    """What changes when a file of the package, or the list of what it needs, is saved."""
    files = [path for path in folder.rglob("*") if "__pycache__" not in path.parts]
    found = set()
    for path in [*files, folder.parent / "requirements.txt"]:
        try:
            status = path.stat()
        except OSError:
            # An editor replaces a file by another one of that name.
            continue
        if path.is_file():
            found.add((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(found)


class Versions(Protocol):
    """The versions of the handlers' layers that the functions of a stack use."""

    def publish(self, layers: Mapping[str, Layer], /) -> None:
        """Have the functions use these layers: attempts that run are not disturbed, those that start are new."""

    def start_worker(self) -> None:
        """Start a process of the present version, so that the next attempt does not wait for it."""


@dataclass(slots=True)
class HandlerVersions:
    """The versions of the handlers' layers that the functions of a stack use."""

    emulator: Emulator
    deployed: Deployment
    used: Mapping[str, Layer]

    def publish(self, layers: Mapping[str, Layer]) -> None:
        """Have the functions use these layers: attempts that run are not disturbed, those that start are new."""
        functions = self.emulator.client("lambda")
        replacements: dict[str, str] = {}
        for part, layer in layers.items():
            name = layer_resource(self.deployed.template, part)
            content = packed(layer.folder)
            # The list of types is seldom another one: without it, the API's processes go on as they are.
            if name is None or (part in self.used and content == packed(self.used[part].folder)):
                continue
            key = f"{layer.fingerprint}.zip"
            self.emulator.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content)
            # Layer versions of one name differ by their number only.
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
        """Start a process of the present version, so that the next attempt does not wait for it."""
        start_one(self.emulator, self.deployed.outputs["WorkerFunctionName"])


class Reloader:
    """Publishes the package after each save; one that cannot be imported is reported, and the last good one stays."""

    def __init__(
        self,
        versions: Versions,
        show_reloaded: Callable[[float], None],
        show_broken: Callable[[str], None],
        *,
        build_layers: Callable[[], Mapping[str, Layer]] = built,
        folder: Path | None = None,
        seen: Signature | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._versions = versions
        self._show_reloaded = show_reloaded
        self._show_broken = show_broken
        self._build = build_layers
        self._folder = folder or handlers_package()
        self._sleep = sleep
        self._seen = signature(self._folder) if seen is None else seen

    def check(self) -> None:
        """Publish the package if it has changed since it was last looked at."""
        now = signature(self._folder)
        if now == self._seen:
            return
        began = time.monotonic()
        while (later := self._later()) != now:
            now = later
        self._seen = now
        try:
            layers = self._build()
        except (NotDeployable, OSError) as broken:
            # A file that an editor has put away while it was read is another change, which is looked at next.
            self._show_broken(str(broken))
            return
        self._versions.publish(layers)
        self._show_reloaded(time.monotonic() - began)
        self._versions.start_worker()

    def run(self) -> None:
        """Check for ever."""
        while True:
            self._sleep(POLL_SECONDS)
            self.check()

    def _later(self) -> Signature:
        """The files a moment later: a save of several files is one change."""
        self._sleep(POLL_SECONDS / 2)
        return signature(self._folder)
