"""Reloading the user's handlers after a save."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime_cdk.layers.build import Layer
from duetime_cdk.layers.handler_import import HandlersUnimportable
from local.handlers import Reloader, signature

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Loop:
    """A reloader of a package in a folder of the test, without waiting."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "package"
        self.folder.mkdir()
        self.save("x = 1")
        self.published: list[Mapping[str, Layer]] = []
        self.messages: list[str] = []
        self.reloader = Reloader(
            self.published.append,
            lambda _: self.messages.append("reloaded"),
            self.messages.append,
            build_layers=self.layers,
            folder=self.folder,
            sleep=lambda _: self.while_waiting(),
        )
        self.saves: list[str] = []

    def save(self, text: str, name: str = "__init__.py") -> None:
        """Write a file of the package; each text has another length."""
        (self.folder / name).write_text(text)

    def while_waiting(self) -> None:
        """What happens between two readings of the files."""
        if self.saves:
            self.save(self.saves.pop(0))

    def layers(self) -> dict[str, Layer]:
        """The package as it would be built."""
        text = (self.folder / "__init__.py").read_text()
        if "broken" in text:
            raise HandlersUnimportable("package", "ModuleNotFoundError: No module named 'nothing'")
        return {"Handlers": Layer(self.folder, text)}

    @property
    def texts(self) -> list[str]:
        """What was published, in order."""
        return [layers["Handlers"].fingerprint for layers in self.published]


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    """A package that nobody has changed yet."""
    return Loop(tmp_path)


def test_a_saved_package_is_published_once(loop: Loop) -> None:
    """Nothing is published before a save, and nothing again after it."""
    loop.reloader.check()
    assert loop.texts == []

    loop.save("x = 22")
    loop.reloader.check()
    loop.reloader.check()

    assert loop.texts == ["x = 22"]
    assert loop.messages == ["reloaded"]


def test_a_package_that_cannot_be_imported_is_reported_and_not_published(loop: Loop) -> None:
    """The reason is shown once; the next good save is published."""
    loop.save("x = broken")
    loop.reloader.check()
    loop.reloader.check()
    assert loop.texts == []
    (message,) = loop.messages
    assert "No module named 'nothing'" in message

    loop.save("x = 4444444444")
    loop.reloader.check()
    assert loop.texts == ["x = 4444444444"]


def test_a_save_of_several_files_is_published_when_it_is_complete(loop: Loop) -> None:
    """While files still change, nothing is built."""
    loop.save("x = 1 + broken")
    loop.saves = ["x = broken + 1 + 1", "x = 1 + 1 + 1 + 1 + 1"]

    loop.reloader.check()

    assert loop.texts == ["x = 1 + 1 + 1 + 1 + 1"]
    assert loop.messages == ["reloaded"]


def test_compiled_files_are_not_part_of_the_package(loop: Loop) -> None:
    """Importing the package changes nothing; the list of what it needs does."""
    before = signature(loop.folder)
    (loop.folder / "__pycache__").mkdir()
    (loop.folder / "__pycache__" / "x.pyc").write_text("compiled")
    assert signature(loop.folder) == before

    (loop.folder.parent / "requirements.txt").write_text("httpx")
    assert signature(loop.folder) != before
