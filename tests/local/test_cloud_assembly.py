"""Tests the local stack's synthesized assembly, which is kept until its inputs change."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

from duetime_local.cloud_assembly import Assembly, fingerprint, packed
from duetime_local.deployment import HANDLERS, layer_resource
from duetime_local.emulator.differences import with_fixed_addresses
from duetime_local.project import STACK, handlers_package, template_inputs
from infra import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_a_change_of_any_input_of_the_template_requires_another_assembly() -> None:
    """Constructs, functions, layers and pinned versions are inputs of the assembly; handlers are reloaded instead."""
    paths = {path.relative_to(ROOT).as_posix() for path in template_inputs()}

    assert {
        "infra/cdk/duetime_cdk/stack.py",
        "infra/environments.py",
        "functions/worker/handler.py",
        "layers/duetime/python/duetime/settings.py",
        "infra/cdk/duetime_cdk/layers/build.py",
        "cdk.json",
        "constraints.txt",
        "pyproject.toml",
    } <= paths
    assert not [path for path in paths if path.startswith(handlers_package().relative_to(ROOT).as_posix())]
    assert not [path for path in paths if "__pycache__" in path]


def test_the_fingerprint_depends_on_contents_and_names_of_files() -> None:
    """The fingerprint depends on the files' contents and names, but not on their order."""
    one, two = ROOT / "cdk.json", ROOT / "pyproject.toml"

    assert fingerprint(iter([one, two])) == fingerprint(iter([two, one]))
    assert len({fingerprint(iter(paths)) for paths in ([one, two], [one], [two])}) == 3


def test_assets_of_an_assembly_are_files_and_archived_folders(tmp_path: Path) -> None:
    """A folder is uploaded as an archive of its files, which is created once."""
    folder = tmp_path / "asset.1"
    (folder / "python").mkdir(parents=True)
    (folder / "python" / "module.py").write_text("x = 1")
    (tmp_path / f"{STACK}.template.json").write_text(json.dumps({"Resources": {}}))
    files = {
        "1": {"source": {"path": "asset.1"}, "destinations": {"here": {"objectKey": "1.zip"}}},
        "2": {"source": {"path": f"{STACK}.template.json"}, "destinations": {"here": {"objectKey": "2.json"}}},
    }
    (tmp_path / f"{STACK}.assets.json").write_text(json.dumps({"files": files}))
    assembly = Assembly(tmp_path)

    assert assembly.template == {"Resources": {}}
    archive, template = assembly.assets
    assert (archive.key, template.key, template.content()) == ("1.zip", "2.json", b'{"Resources": {}}')
    first = archive.content()
    (folder / "python" / "module.py").write_text("x = 2")
    assert archive.content() == first
    with zipfile.ZipFile(io.BytesIO(first)) as opened:
        assert opened.namelist() == ["python/module.py"]
        assert opened.read("python/module.py") == b"x = 1"
    assert packed(folder) != first


def test_each_api_has_a_fixed_address() -> None:
    """Two APIs get different fixed ids and keep their other tags; the given template is not changed."""
    kind = "AWS::ApiGatewayV2::Api"
    template = {
        "Resources": {
            "Http": {"Type": kind, "Properties": {"ProtocolType": "HTTP", "Tags": {"project": "duetime"}}},
            "Live": {"Type": kind, "Properties": {"ProtocolType": "WEBSOCKET"}},
            "Table": {"Type": "AWS::DynamoDB::Table"},
        }
    }
    before = json.dumps(template)

    fixed = with_fixed_addresses(template)["Resources"]

    assert json.dumps(template) == before
    assert fixed["Http"]["Properties"]["Tags"] == {"project": "duetime", "ms-custom-id": "duetime-api"}
    assert fixed["Live"]["Properties"]["Tags"] == {"ms-custom-id": "duetime-live"}
    assert fixed["Table"] == {"Type": "AWS::DynamoDB::Table"}


def test_a_layer_is_found_by_its_logical_id_without_hash() -> None:
    """A layer is found without the hash at the end of its logical id; without the layer, the result is `None`."""
    path = {"aws:cdk:path": f"{STACK}/Layers/{HANDLERS}/Resource"}
    template = {"Resources": {"Other": {}, "LayersHandlers1234": {"Metadata": path}}}

    assert layer_resource(template, HANDLERS) == "LayersHandlers1234"
    assert layer_resource({"Resources": {"Other": {}}}, HANDLERS) is None
