"""Tests that the user's handlers are reloaded when their files are saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime_cdk.layers.build import Layer
from duetime_cdk.layers.handler_import import HandlersUnimportable
from duetime_cdk.layers.install import RequirementsUninstallable
from duetime_local.deployment import HANDLERS, TYPES, Deployment
from duetime_local.handler_reload import HandlerVersions, Reloader, signature

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Loop:
    """A reloader that does not really wait, for a package in the test's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "package"
        self.folder.mkdir()
        self.save("x = 1")
        self.published: list[Mapping[str, Layer]] = []
        self.messages: list[str] = []
        self.errors: list[Exception] = []
        self.reloader = Reloader(
            self,
            lambda _: self.messages.append("reloaded"),
            self.messages.append,
            build_layers=self.layers,
            watched=[self.folder],
            sleep=lambda _: self.while_waiting(),
        )
        self.saves: list[str] = []

    def publish(self, layers: Mapping[str, Layer]) -> None:
        """Record the layers that the functions use."""
        self.published.append(layers)

    def start_worker(self) -> None:
        """Record that a worker process is started."""
        self.messages.append("started")

    def save(self, text: str, name: str = "__init__.py") -> None:
        """Write a file in the package; each test uses texts of different lengths."""
        (self.folder / name).write_text(text)

    def while_waiting(self) -> None:
        """Apply the file changes that happen between two reads."""
        if self.saves:
            self.save(self.saves.pop(0))

    def layers(self) -> dict[str, Layer]:
        """Build the layers of the package."""
        if self.errors:
            raise self.errors.pop()
        text = (self.folder / "__init__.py").read_text()
        if "broken" in text:
            raise HandlersUnimportable("package", "ModuleNotFoundError: No module named 'nothing'")
        return {"Handlers": Layer(self.folder, text)}

    @property
    def texts(self) -> list[str]:
        """The published versions, in order."""
        return [layers["Handlers"].fingerprint for layers in self.published]


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    """Return a reloader with an unchanged package."""
    return Loop(tmp_path)


def test_a_saved_package_is_published_once(loop: Loop) -> None:
    """Nothing is published before a file is saved, and the saved package is published only once."""
    loop.reloader.check()
    assert loop.texts == []

    loop.save("x = 22")
    loop.reloader.check()
    loop.reloader.check()

    assert loop.texts == ["x = 22"]
    assert loop.messages == ["reloaded", "started"]


def test_files_saved_during_the_start_are_published_at_once(loop: Loop) -> None:
    """Files are compared with their state before the stack was built, and not with their state when the stack is up."""
    before = signature(loop.folder)
    loop.save("x = 22")
    reloader = Reloader(
        loop,
        lambda _: None,
        loop.messages.append,
        build_layers=loop.layers,
        watched=[loop.folder],
        seen=before,
        sleep=lambda _: None,
    )
    reloader.check()
    reloader.check()
    assert loop.texts == ["x = 22"]


class FakeStack:
    """Records the calls that update a stack's layers."""

    def __init__(self) -> None:
        self.layers = {"worker": ["handlers:1", "types:1"], "api": ["types:1"]}
        self.updated: list[str] = []
        self.port, self.folder = 0, None

    def client(self, _service: str) -> FakeStack:
        """Return this object as the client for every service."""
        return self

    def put_object(self, **_: object) -> None:
        """Accept an upload."""

    def publish_layer_version(self, *, LayerName: str, Content: object) -> dict[str, str]:  # noqa: ARG002, N803 - boto3's names
        """Return a new layer version."""
        return {"LayerVersionArn": f"{LayerName}:2"}

    def list_functions(self) -> dict[str, object]:
        """Return all functions with their layers."""
        return {
            "Functions": [
                {"FunctionName": name, "Layers": [{"Arn": arn} for arn in arns]} for name, arns in self.layers.items()
            ]
        }

    def update_function_configuration(self, *, FunctionName: str, Layers: list[str]) -> None:  # noqa: N803 - as above
        """Record the new layers of a function."""
        self.updated.append(FunctionName)
        self.layers[FunctionName] = Layers


def test_functions_with_unchanged_layers_continue(tmp_path: Path) -> None:
    """Saving a handler ends none of the API's processes unless the task types have changed."""

    def layers(handlers: str, types: str) -> dict[str, Layer]:
        made = {}
        for part, text in ((HANDLERS, handlers), (TYPES, types)):
            folder = tmp_path / f"{part} {handlers} {types}"
            folder.mkdir()
            (folder / "module.py").write_text(text)
            # Each version of the package results in a new version of the types layer.
            made[part] = Layer(folder, f"{handlers} {types}")
        return made

    template = {
        "Resources": {
            part: {"Metadata": {"aws:cdk:path": f"duetime-local/Layers/{part}/Resource"}} for part in (HANDLERS, TYPES)
        }
    }
    deployment = Deployment(
        "", {"WorkerFunctionName": "worker"}, 2, {HANDLERS: "handlers:1", TYPES: "types:1"}, template
    )
    stack = FakeStack()
    versions = HandlerVersions(stack, deployment, layers("one", "a b"))  # type: ignore[arg-type]  # a stand-in

    versions.publish(layers("two", "a b"))
    assert (stack.updated, stack.layers["worker"]) == (["worker"], ["handlers:2", "types:1"])

    stack.updated.clear()
    versions.publish(layers("two", "a b c"))
    assert sorted(stack.updated) == ["api", "worker"]


def test_a_package_that_cannot_be_imported_is_reported_and_not_published(loop: Loop) -> None:
    """If a saved file is broken, the reason is shown once, and the next valid save is published."""
    loop.save("x = broken")
    loop.reloader.check()
    loop.reloader.check()
    assert loop.texts == []
    (message,) = loop.messages
    assert "No module named 'nothing'" in message

    loop.save("x = 4444444444")
    loop.reloader.check()
    assert loop.texts == ["x = 4444444444"]


@pytest.mark.parametrize(
    "error", [RequirementsUninstallable("no such package"), FileNotFoundError("a temporary file of the editor")]
)
def test_a_failed_build_is_reported_and_the_next_save_is_published(loop: Loop, error: Exception) -> None:
    """If a build fails for any reason, the reason is reported and watching continues."""
    loop.errors.append(error)
    loop.save("x = 22")
    loop.reloader.check()
    assert (loop.texts, loop.messages) == ([], [str(error)])

    loop.save("x = 333")
    loop.reloader.check()
    assert loop.texts == ["x = 333"]


def test_a_save_of_several_files_is_published_when_it_is_complete(loop: Loop) -> None:
    """While files still change, nothing is built."""
    loop.save("x = 1 + broken")
    loop.saves = ["x = broken + 1 + 1", "x = 1 + 1 + 1 + 1 + 1"]

    loop.reloader.check()

    assert loop.texts == ["x = 1 + 1 + 1 + 1 + 1"]
    assert loop.messages == ["reloaded", "started"]


def test_compiled_files_are_not_part_of_the_package(loop: Loop) -> None:
    """Compiled files, which imports create, cause no reload, but a change to the package's requirements does."""
    before = signature(loop.folder)
    (loop.folder / "__pycache__").mkdir()
    (loop.folder / "__pycache__" / "x.pyc").write_text("compiled")
    assert signature(loop.folder) == before

    (loop.folder.parent / "requirements.txt").write_text("httpx")
    assert signature(loop.folder) != before
