from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from botocore.session import get_session

from duetime import adapters
from duetime_cdk.environments import CLOUD
from duetime_cdk.handlers_folder import handlers_of
from duetime_cdk.layers import build, bytecode
from duetime_cdk.layers.handler_import import HandlersUnimportable
from duetime_cdk.layers.install import AWS_SERVICES, RequirementsUninstallable
from duetime_cdk.layers.target import Target
from duetime_cdk.source_folders import CONSTRAINTS
from infra.environments import environment_named

if TYPE_CHECKING:
    from duetime_cdk.layers.build import Layer, Layers

UNCHECKED_HASH = 0b01
"""The second word of a `.pyc` that contains its source's hash, which Python does not compare on import (PEP 552)."""
MAGIC_OF_3_14 = 3627
"""CPython's bytecode magic number in every 3.14 release (`Include/internal/pycore_magic_number.h`)."""
IMPORT_ALL = """
import json, sys
import aws_lambda_powertools, boto3, duetime, duetime.handlers, example_handlers, pydantic
for service in SERVICES:
    boto3.client(service, region_name="us-east-1")
found = {name: sys.modules[name].__file__ for name in ("boto3", "duetime", "example_handlers", "pydantic")}
print(json.dumps({"files": found, "types": sorted(duetime.handlers.REGISTRY)}))
""".replace("SERVICES", repr(sorted(AWS_SERVICES)))


@pytest.fixture(scope="module")
def built() -> Layers:
    """Return the local environment's layers, as `make setup` has built them."""
    local = environment_named("local")
    return build.build(local.target, handlers_of(local).package)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a small package of handlers, whose layer is built into a folder of the test."""
    monkeypatch.setattr(build, "OUTPUT", tmp_path / "built")
    package = tmp_path / "source" / "own_handlers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("ANSWER = 42\n")
    return package


def header(compiled: Path) -> tuple[int, int]:
    """Return the magic number and the flags of a `.pyc`."""
    content = compiled.read_bytes()
    return int.from_bytes(content[:2], "little"), int.from_bytes(content[4:8], "little")


def test_the_layers_contain_everything_that_a_function_needs(built: Layers) -> None:
    """With only the three layers on its path, Python imports all modules and creates every client that duetime uses."""
    folders = [str(layer.folder / "python") for layer in (built.dependencies, built.duetime, built.handlers)]
    environ = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(folders)}
    # -S excludes the site-packages of this environment.
    command = [sys.executable, "-S", "-c", IMPORT_ALL]
    answer = json.loads(subprocess.run(command, env=environ, check=True, capture_output=True).stdout)  # noqa: S603 (our own line)
    assert all(file.startswith(tuple(folders)) for file in answer["files"].values())
    assert "ci.job" in answer["types"]


def test_a_message_is_printed_only_before_a_layer_is_built(package: Path) -> None:
    """A project's first `cdk synth` takes minutes and prints why; the second finds all layers and prints nothing."""
    said: list[str] = []
    for _ in range(2):
        build.handlers_layer(Target.of_this_machine(), package, said.append)
    (line,) = said
    assert line.startswith("building the layer handlers for ")


def test_every_module_of_a_layer_is_compiled(built: Layers) -> None:
    """Each module has bytecode that this Python loads without comparing times, because `/opt` does not keep them."""
    ours = int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little")
    for layer in (built.dependencies, built.duetime, built.handlers):
        modules = list(layer.folder.rglob("*.py"))
        assert modules
        for module in modules:
            compiled = module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc"
            assert header(compiled) == (ours, UNCHECKED_HASH)


def test_layers_contain_only_the_service_models_that_duetime_uses(built: Layers) -> None:
    """Service models that duetime does not use are left out, so the layer stays well below Lambda's limit."""
    data = built.dependencies.folder / "python" / "botocore" / "data"
    assert {path.name for path in data.iterdir() if path.is_dir()} == AWS_SERVICES
    size = sum(path.stat().st_size for path in built.dependencies.folder.rglob("*") if path.is_file())
    assert size < 40_000_000


def test_the_layer_has_the_models_of_all_services_of_the_adapters() -> None:
    """The layer has exactly the models of the services for which adapters create clients, and two more."""
    services = set(get_session().get_available_services())
    called: set[str] = set()
    for path in Path(adapters.__path__[0]).rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        named = {"_client", "jobs"}
        made = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in named]
        called |= {str(arg.value) for call in made for arg in call.args if isinstance(arg, ast.Constant)} & services
    # The other two are for assuming roles, and for the secrets that handlers read.
    assert called | {"sts", "ssm"} == AWS_SERVICES


def test_the_layer_contains_no_tests_and_caches(built: Layers) -> None:
    """The duetime layer contains only modules of three packages, their bytecode, and the API document's examples."""
    root = built.duetime.folder / "python"
    assert sorted(path.name for path in root.iterdir()) == ["duetime", "duetime_client", "duetime_common"]
    assert {path.suffix for path in root.rglob("*") if path.is_file()} <= {".py", ".pyc", ".typed", ".json"}


def test_an_unchanged_layer_is_not_built_again(package: Path) -> None:
    """A layer is not built again if its inputs have not changed."""
    target = Target.of_this_machine()
    first = build.handlers_layer(target, package)
    marker = first.folder / "untouched"
    marker.touch()
    assert build.handlers_layer(target, package) == first
    assert marker.exists()


def test_a_changed_source_results_in_another_layer(package: Path) -> None:
    """Changing one line in a source results in a new layer, so that no deployment has a stale layer."""
    target = Target.of_this_machine()
    first = build.handlers_layer(target, package)
    (package / "__init__.py").write_text("ANSWER = 43\n")
    second = build.handlers_layer(target, package)
    assert second.fingerprint != first.fingerprint
    assert (second.folder / "python" / "own_handlers" / "__init__.py").read_text() == "ANSWER = 43\n"


@pytest.mark.slow
def test_the_cloud_layer_is_separate_from_the_local_layer(package: Path) -> None:
    """The cloud has a separate layer, with bytecode for the cloud's Python that contains the files' paths in Lambda."""
    here = build.handlers_layer(Target.of_this_machine(), package)
    cloud = build.handlers_layer(CLOUD, package)
    assert here.folder != cloud.folder
    (compiled,) = cloud.folder.rglob("*.pyc")
    assert header(compiled) == (MAGIC_OF_3_14, UNCHECKED_HASH)
    assert b"/opt/python/own_handlers/__init__.py" in compiled.read_bytes()


@pytest.mark.slow
def test_a_source_that_does_not_compile_fails_the_build(package: Path) -> None:
    """Code that this machine's or the cloud's Python cannot compile stops the build, and no layer is left behind."""
    (package / "__init__.py").write_text("def broken(:\n")
    for target in (Target.of_this_machine(), CLOUD):
        with pytest.raises(bytecode.SourceUncompilable, match="def broken"):
            build.handlers_layer(target, package)
    assert not [path for path in build.OUTPUT.rglob("handlers-*") if path.is_dir()]


def test_a_syntax_error_is_reported_with_the_line_in_the_users_file(package: Path) -> None:
    """A syntax error is reported with the user's own file, even if no module imports it yet, and nothing is built."""
    (package / "later.py").write_text("def broken(:\n")
    with pytest.raises(HandlersUnimportable, match=r"own_handlers/later\.py\", line 1(.|\n)*SyntaxError") as error:
        build.types_layer(Target.of_this_machine(), package)
    assert str(build.OUTPUT) not in str(error.value)


def test_the_error_for_an_invalid_requirement_is_the_message_of_uv(package: Path) -> None:
    """An invalid requirement is refused without a network, with uv's own message."""
    (package.parent / "requirements.txt").write_text("not a requirement!\n")
    with pytest.raises(RequirementsUninstallable, match=r"nothing is deployed:\n(.|\n)*not a requirement"):
        build.handlers_layer(Target.of_this_machine(), package)


def test_the_error_for_a_missing_python_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If neither an interpreter of the target's version nor Node.js is found, the error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bytecode.BytecodeUnwritable, match=r"python3\.14.*npm ci"):
        bytecode.write_bytecode(tmp_path, "3.14")


def test_the_layer_contains_the_requirements_of_the_handlers(package: Path) -> None:
    """The layer has the pinned packages from the `requirements.txt` beside the package."""
    (package.parent / "requirements.txt").write_text("# one of ours, so that nothing new is fetched\njmespath\n")
    layer = build.handlers_layer(Target.of_this_machine(), package)
    pinned = [
        line.removesuffix(" \\") for line in CONSTRAINTS.read_text().splitlines() if line.startswith("jmespath==")
    ]
    (installed,) = (layer.folder / "python").glob("jmespath-*.dist-info")
    assert pinned == [f"jmespath=={installed.name.removeprefix('jmespath-').removesuffix('.dist-info')}"]


def types_in(layer: Layer | None) -> str:
    """Return the contents of the types layer."""
    assert layer is not None
    (module,) = (layer.folder / "python").glob("*.py")
    return module.read_text()


@pytest.mark.slow
def test_the_types_of_the_handlers_are_written_to_a_module(package: Path) -> None:
    """Importing the package finds the types; the module that lists them imports nothing and runs in any Python."""
    (package / "__init__.py").write_text("from own_handlers import jobs\n")
    registered = "handler('b', timeout_seconds=30)(print)\nhandler('a')(print)\n"
    lines = f"from duetime.handlers import handler\n\n\n{registered}print('hello')\n"
    (package / "jobs.py").write_text(lines)
    for target in (Target.of_this_machine(), CLOUD):
        text = types_in(build.types_layer(target, package))
        assert "TYPES = ('a', 'b')" in text
        assert "import" not in text
        assert "'defaults': {'timeout_seconds': 30}" in text


def test_a_package_that_cannot_be_imported_is_not_deployed(package: Path) -> None:
    """If the import of the handlers fails, the build stops and shows the error."""
    (package / "__init__.py").write_text("import nosuchmodule\n")
    with pytest.raises(HandlersUnimportable, match=r"own_handlers(.|\n)*No module named 'nosuchmodule'") as error:
        build.types_layer(CLOUD, package)
    # The error names the user's own file and not its copy, and has no frames of the import system.
    assert f'File "{package / "__init__.py"}", line 1' in str(error.value)
    assert "importlib" not in str(error.value)
    assert "<string>" not in str(error.value)
    assert not list(build.OUTPUT.rglob("types-*"))


def test_the_local_stack_lists_the_types_of_the_example_handlers(built: Layers) -> None:
    """The local stack is deployed with the list of the example handlers' types."""
    assert "'ci.job'" in types_in(built.types)
