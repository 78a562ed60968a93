"""Tests an upgrade and a rollback between earlier code, at a pinned commit, and the current code.

Earlier code runs in separate processes, from a checkout that `git archive` makes of the commit, and exchanges complete
tables with the current code. There is no wheel with the earlier code, because nothing was released and a wheel has no
tests. In a clone without this commit, which `git fetch --depth 1 origin COMMIT` fetches, these tests are skipped.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from infra import ROOT
from tests.upgrades.freezing import SCENES, frozen_scene
from tests.upgrades.life import Life
from tests.upgrades.test_frozen import covers, end_of, tasks_in, thawed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EARLIER = "9a496f72bd288f8fb56f0b8c851a91dd7924d619"
"""The commit with the earlier code; from the first release on, the commit of the previous release."""
SOURCES = ("layers/duetime/python", "common", "client", "testing", "infra/cdk", ".")
"""The folders of the earlier code's packages."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout of the earlier code without frozen scenes."""
    folder = tmp_path_factory.mktemp("earlier")
    git = shutil.which("git") or pytest.skip("git is not installed")
    made = subprocess.run([git, "archive", EARLIER], cwd=ROOT, check=False, capture_output=True)  # noqa: S603 - ours
    if made.returncode:
        pytest.skip(f"this clone does not have the commit {EARLIER}")
    archive = made.stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    shutil.rmtree(folder / "tests" / "upgrades" / "frozen" / "v1")
    return folder


def run_earlier(folder: Path, *arguments: str) -> str:
    """Run one of the earlier code's modules and return the output."""
    paths = os.pathsep.join(str(folder / each) for each in SOURCES)
    environ = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", *arguments], cwd=folder, env=environ, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]
    return done.stdout


@pytest.fixture(scope="module")
def scenes(earlier: Path) -> list[Path]:
    """Return the earlier code's items by scene, such as live tasks of every kind, schedules, graphs and locks."""
    run_earlier(earlier, "tests.upgrades.freezing")
    found = sorted((earlier / "tests" / "upgrades" / "frozen" / "v1").glob("*.json"))
    assert len(found) > 20
    return found


@pytest.fixture(autouse=True)
def composed() -> Iterator[None]:
    """Remove the current code's deployment after each test."""
    yield
    composition.use(None)


def test_the_other_processes_run_the_earlier_code(earlier: Path) -> None:
    """The other processes import the checkout's packages and not the installed packages."""
    code = "import duetime, duetime_testing, tests; print(duetime.__file__, duetime_testing.__file__, tests.__file__)"
    (earlier / "where.py").write_text(code, encoding="utf-8")
    assert all(each.startswith(str(earlier)) for each in run_earlier(earlier, "where").split())


def test_after_an_upgrade_all_tasks_continue(scenes: list[Path]) -> None:
    """The current code responds as the earlier code did, and each task ends as expected."""
    for path in scenes:
        life = Life.faked()
        scene = thawed(life, path)
        for asked, then in scene["answers"].items():
            assert covers(life.api.send("GET", asked).body, then), (path.stem, asked)
        for task_id in tasks_in(scene):
            then = scene["answers"][f"/v1/tasks/{task_id}"]
            assert life.finish(task_id) in end_of(then), (path.stem, then)


def test_after_a_rollback_all_tasks_continue(earlier: Path, scenes: list[Path]) -> None:
    """The earlier code reads, finishes and archives the tasks that the current code has created or changed."""
    folder = earlier / "tests" / "upgrades" / "frozen" / "v1"
    known = {path.stem for path in scenes}
    kept = {path: path.read_text(encoding="utf-8") for path in scenes}
    try:
        for scene in SCENES:
            if scene.__name__ in known:
                _write(folder / f"{scene.__name__}.json", frozen_scene(Life.faked(), scene))
        for path, text in kept.items():
            _write(folder / f"{path.stem}_gone_on.json", _gone_on(Life.faked(), path, text))
        # The responses come from the current code and may have more fields than earlier responses.
        chosen = ("-k", "(what_was_frozen or kept) and not reads_as", "-p", "no:cacheprovider")
        assert " passed" in run_earlier(earlier, "pytest", "tests/upgrades/test_frozen.py", "-q", *chosen)
    finally:
        for path in folder.glob("*.json"):
            path.unlink()
        for path, text in kept.items():
            path.write_text(text, encoding="utf-8")


def _gone_on(life: Life, path: Path, text: str) -> dict[str, Any]:
    """Return one of the earlier code's scenes after the current code has made one step with each of its tasks."""
    path.write_text(text, encoding="utf-8")
    scene = thawed(life, path)
    for task_id in tasks_in(scene):
        task = life.read(task_id)
        if task.finished_at is None and not task.is_terminal and task.lease_expires_at is None:
            life.work(task_id)
    answers = {
        asked: answer.body for asked in scene["answers"] if (answer := life.api.send("GET", asked)).status == 200
    }
    return {**scene, "clock": life.stack.clock.at, "items": life.items(), "answers": answers}


def _write(path: Path, scene: dict[str, Any]) -> None:
    path.write_text(json.dumps(scene), encoding="utf-8")
