"""Tests the distributions' metadata, and a project that is deployed only from the wheels."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duetime_cdk
from duetime_cdk import DEV
from duetime_cdk.source_folders import CONSTRAINTS, FUNCTIONS, REQUIREMENTS, node_package, project_folder
from duetime_client.new_project import PIPELINES, TEMPLATE
from duetime_local.emulator.location import free_port
from infra import ROOT
from infra.release import PACKAGES, project_of
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def test_all_distributions_have_and_require_the_same_version() -> None:
    """All distributions have one version and require exactly this version of each other, so all code fits together."""
    projects = {folder: project_of(folder)["project"] for folder in PACKAGES}
    (version,) = {project["version"] for project in projects.values()}
    for folder in (".", "client", "testing", "infra/cdk", "local"):
        ours = [each for each in projects[folder]["dependencies"] if each.startswith("duetime")]
        assert ours
        assert all(each.endswith(f"=={version}") for each in ours)


def test_the_client_has_only_tested_lower_bounds_of_its_dependencies() -> None:
    """The client shares users' environments, so it sets no upper bounds; `make test-lowest` tests the lower bounds."""
    project = project_of("client")["project"]
    listed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    foreign = [each for each in listed if not each.startswith("duetime-")]
    assert [each for each in foreign if not re.fullmatch(r"[a-z]+>=[\d.]+", each)] == []


def test_the_makefile_knows_all_distributions() -> None:
    """The Makefile lists the folder, the requirement and the name of each distribution."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    listed = {name: value for name, _, value in (line.partition(" := ") for line in lines)}
    assert listed["FOLDERS"].split() == list(PACKAGES)
    assert [re.sub(r"\[.*\]", "", each.strip("'")) for each in listed["DISTRIBUTIONS"].split()] == list(PACKAGES)
    assert listed["NAMES"].split() == [project_of(folder)["project"]["name"] for folder in PACKAGES]


def test_the_wheel_of_the_constructs_contains_all_files_of_a_deployment() -> None:
    """Each file that the constructs read from outside their package is where the wheel's module looks for the file."""
    included = project_of("infra/cdk")["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    found = {(ROOT / "infra/cdk" / source).resolve(): target for source, target in included.items()}
    assert found == {
        path.resolve(): f"duetime_cdk/assets/{path.name}" for path in (CONSTRAINTS, FUNCTIONS, REQUIREMENTS)
    }


def test_a_wheel_installs_only_its_package() -> None:
    """No wheel has a top-level package, such as `functions`, that a project may have; commands are in the package."""
    for folder, package in PACKAGES.items():
        settings = project_of(folder)
        wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
        assert [Path(path).name for path in wheel["packages"]] == [package]
        assert all(target.startswith(f"{package}/") for target in wheel.get("force-include", {}).values())
        points = settings["project"].get("entry-points", {}) | {"scripts": settings["project"].get("scripts", {})}
        targets = [target for group in points.values() for target in group.values()]
        assert all(target.startswith(package) for target in targets)


def test_every_public_name_can_be_imported_with_types() -> None:
    """Each name of the public interface can be imported, and has types."""
    assert all(getattr(duetime_cdk, name) is not None for name in duetime_cdk.__all__)
    assert (Path(duetime_cdk.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no attribute 'Absent'"):
        duetime_cdk.Absent  # noqa: B018 - its error is what is tested


def test_settings_are_read_without_the_construct_library() -> None:
    """Settings can be read without the construct library, which starts a Node.js process."""
    code = "import sys, duetime_cdk; assert duetime_cdk.PROD; sys.exit('aws_cdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 - ours


def test_the_project_is_the_folder_of_its_cdk_json(tmp_path: Path) -> None:
    """The project is found from any folder within it, and Node packages are looked for in the project first."""
    (tmp_path / "handlers" / "shop").mkdir(parents=True)
    (tmp_path / "cdk.json").write_text("{}")
    assert project_folder(tmp_path / "handlers" / "shop") == tmp_path.resolve()
    assert project_folder(ROOT / "tests") == ROOT
    assert node_package("pyodide") == ROOT / "node_modules" / "pyodide"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an environment with only the wheels installed."""
    folder = tmp_path_factory.mktemp("wheels")
    uv = Path(sys.executable).with_name("uv")
    for source in PACKAGES:
        _run([str(uv), "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), str(ROOT / source)], folder)
    wheels = [str(path) for path in (folder / "dist").glob("*.whl")]
    assert len(wheels) == len(PACKAGES)
    python = folder / "venv" / "bin" / "python"
    _run([str(uv), "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], folder)
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python), "--constraints", str(ROOT / CONSTRAINTS)]
    _run([*install, *wheels], folder)
    return python


def _run(command: list[str], folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a command outside of this checkout, without this checkout's path and environment."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(  # noqa: S603 - tools and files of this checkout
        command, cwd=folder, env={**kept, **(environ or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_project_is_synthesized_with_only_the_wheels(installed: Path, tmp_path: Path) -> None:
    """A new project's template equals this checkout's template for the same settings, including the hashes of assets.

    The project's tests also run with the wheels.
    """
    project = tmp_path / "web-shop"
    _run([str(installed.with_name("duetime")), "init", str(project)], tmp_path)
    # Users get the Node packages from `npm install`; this test uses the packages in the checkout.
    (project / "node_modules").symlink_to(ROOT / "node_modules")
    flags = json.dumps(json.loads((project / "cdk.json").read_text(encoding="utf-8"))["context"])
    out = tmp_path / "cdk.out"
    _run([str(installed), "app.py"], project, {"CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": flags})
    made = json.loads((out / "duetime-dev.template.json").read_text(encoding="utf-8"))
    assert made == _template_of_checkout(project, tmp_path / "checkout.out")
    functions = [body["Properties"] for body in made["Resources"].values() if body["Type"] == "AWS::Lambda::Function"]
    assert {function["Handler"] for function in functions} >= {"api.handler.handler", "worker.handler.handler"}
    tested = _run([str(installed), "-m", "pytest", "-q", "-p", "no:cacheprovider"], project)
    assert "4 passed" in tested


GREET = """from duetime.handlers import handler


@handler("greet")
def greet(context, payload):
    return "{greeting}"
"""


@pytest.mark.slow
def test_a_project_runs_locally_with_only_the_wheels(installed: Path, tmp_path: Path) -> None:
    """`duetime dev` installs its embedded AWS, runs a task, and runs another task after the handlers were changed."""
    project = tmp_path / "web-shop"
    duetime = installed.with_name("duetime")
    _run([str(duetime), "init", str(project)], tmp_path)
    (project / "node_modules").symlink_to(ROOT / "node_modules")
    module = project / "handlers" / "web_shop" / "greetings.py"
    module.write_text(GREET.format(greeting="hello"))
    # The package imports only this module.
    (module.parent / "__init__.py").write_text("from web_shop import greetings as greetings\n")
    printed = project / "printed.txt"
    with _developing(duetime, project, printed):
        assert _greeting(duetime, project) == "hello"
        module.write_text(GREET.format(greeting="good evening"))
        assert until(lambda: "handlers reloaded" in printed.read_text(), 60)
        assert _greeting(duetime, project) == "good evening"
    assert list((project / ".duetime").glob("emulator-*/bin/python"))
    assert not (project / ".duetime" / "local.json").exists()


@contextmanager
def _developing(duetime: Path, project: Path, printed: Path) -> Iterator[None]:
    """Run `duetime dev` in a project while this context is open."""
    command = [str(duetime), "dev", "--port", str(free_port(0))]
    environ = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    with (
        printed.open("wb") as output,
        subprocess.Popen(command, cwd=project, env=environ, stdout=output, stderr=output) as process,  # noqa: S603
    ):
        try:
            ready = project / ".duetime" / "local.json"
            assert until(lambda: ready.exists() or process.poll() is not None, 600)
            assert process.poll() is None, printed.read_text()
            yield
        finally:
            # SIGINT is not used, because this process ignores SIGINT if the tests run in the background.
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


def _greeting(duetime: Path, project: Path) -> str:
    """Run a task and return its result."""
    task = json.loads(_run([str(duetime), "tasks", "create", "greet", "--wait", "--json"], project))
    assert task["state"] == "succeeded", task
    result: str = task["result"]
    return result


def _template_of_checkout(project: Path, out: Path) -> dict[str, Any]:
    """Return the template of the same stack, made by this checkout's constructs."""
    from aws_cdk import App  # noqa: PLC0415 - it starts a Node.js process

    from duetime_cdk import DuetimeStack  # noqa: PLC0415 - same

    flags = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    app = App(context=flags, outdir=str(out))
    DuetimeStack(app, "duetime-dev", handlers=project / "handlers", environment=DEV)
    app.synth()
    template: dict[str, Any] = json.loads((out / "duetime-dev.template.json").read_text(encoding="utf-8"))
    return template


@pytest.mark.slow
def test_wheels_have_the_console_and_no_bytecode(installed: Path) -> None:
    """The console is built before the wheels, and this machine's caches are left out."""
    (wheel,) = (installed.parents[2] / "dist").glob("duetime_cdk-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "duetime_cdk/assets/functions/console/static/index.html" in names
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.slow
def test_the_wheel_of_the_client_has_the_template(installed: Path) -> None:
    """The client's wheel has all files in the project template, including hidden files and pipelines' files."""
    (wheel,) = (installed.parents[2] / "dist").glob("duetime_client-*.whl")
    folders = [ROOT / "client" / "duetime_client" / name for name in (TEMPLATE, PIPELINES)]
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = {path.relative_to(ROOT / "client").as_posix() for path in found}
    assert len(files) >= 15
    assert files <= set(zipfile.ZipFile(wheel).namelist())
