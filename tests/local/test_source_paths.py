"""Tests that handlers' tracebacks in the local stack name the user's own files."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

from duetime_local.emulator import source_paths
from duetime_local.emulator.source_paths import PACKAGE_FILE, named, own_path

FAILING = "def fail():\n    def inner():\n        raise KeyError('x')\n    inner()\n"


def _layer(folder: Path) -> tuple[Path, Path]:
    """Return the user's package, and the folder with the layer that was made from the package."""
    own, packed = folder / "project" / "handlers" / "shop", folder / "tmp" / "layers" / "2" / "python" / "shop"
    for package in (own, packed):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "orders.py").write_text(FAILING)
    return own, packed


def test_a_process_names_the_users_file_in_a_traceback(tmp_path: Path) -> None:
    """Every frame in the handlers names the user's file, whether it was loaded from source or bytecode."""
    own, packed = _layer(tmp_path)
    startup = tmp_path / "startup"
    startup.mkdir()
    (startup / "sitecustomize.py").write_text(Path(source_paths.__file__).read_text(encoding="utf-8"))
    (tmp_path / "tmp" / PACKAGE_FILE).write_text(str(own))
    environ = {"PYTHONPATH": f"{startup}:{packed.parent}", "TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, "-c", "from shop.orders import fail; fail()"]
    for _ in range(2):  # the second process loads the bytecode that the first process has written
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - constant
        assert done.stderr.count(f'File "{own}/orders.py", line') == 2
        assert "layers" not in done.stderr


def test_only_files_of_the_users_package_are_renamed(tmp_path: Path) -> None:
    """Other packages in the layer, modules in other folders, and deleted files keep their paths."""
    own, packed = _layer(tmp_path)
    assert own_path(str(packed / "orders.py"), own) == str(own / "orders.py")
    assert own_path(str(packed.with_name("boto3") / "orders.py"), own) is None
    assert own_path(str(own / "orders.py"), own) is None
    assert own_path("/venv/python/shop/orders.py", own) is None
    (own / "orders.py").unlink()
    assert own_path(str(packed / "orders.py"), own) is None


def test_the_functions_of_a_module_are_renamed_with_it() -> None:
    """A module's nested functions get the new path together with the module."""
    scope: dict[str, object] = {}
    exec(named(compile(FAILING, "before.py", "exec"), "after.py"), scope)  # noqa: S102 - the text above
    try:
        scope["fail"]()  # type: ignore[operator]
    except KeyError as error:
        frames = traceback.extract_tb(error.__traceback__)
    assert [frame.filename for frame in frames[1:]] == ["after.py", "after.py"]
