"""Tests that `duetime template` writes a template and assets that need neither the CDK nor its bootstrap stack."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from duetime_client import standalone_template
from duetime_client.cdk_project import OUTPUT
from duetime_client.commands.app import app
from duetime_client.standalone_template import StackNotStandalone, standalone, write_standalone

if TYPE_CHECKING:
    from pathlib import Path

CODE, LAYER = f"{'a' * 64}.zip", f"{'b' * 64}.zip"
CDK_BUCKET = {"Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Worker": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Code": {"S3Bucket": CDK_BUCKET, "S3Key": CODE}, "Layers": [{"Ref": "Layer"}]},
        },
        "Layer": {
            "Type": "AWS::Lambda::LayerVersion",
            "Properties": {"Content": {"S3Bucket": "cdk-hnb659fds-assets-123456789012-eu-west-1", "S3Key": LAYER}},
        },
    },
    "Outputs": {"ApiUrl": {"Value": "https://example.org"}},
    "Parameters": {"BootstrapVersion": {"Type": "AWS::SSM::Parameter::Value<String>"}, "Own": {"Type": "String"}},
    "Rules": {"CheckBootstrapVersion": {"Assertions": []}},
}


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    """Create a CDK output folder with a template, a folder with code, and a file."""
    folder = tmp_path / OUTPUT
    (folder / "asset.a" / "worker").mkdir(parents=True)
    (folder / "asset.a" / "worker" / "handler.py").write_text("code")
    (folder / "asset.b.zip").write_bytes(b"archive")
    (folder / "duetime-prod.template.json").write_text(json.dumps(TEMPLATE))
    files = {
        name: {"source": {"path": path}, "destinations": {"here": {"objectKey": key}}}
        for name, path, key in (
            ("a", "asset.a", CODE),
            ("b", "asset.b.zip", LAYER),
            ("c", "duetime-prod.template.json", f"{'c' * 64}.json"),
        )
    }
    (folder / "duetime-prod.assets.json").write_text(json.dumps({"files": files, "dockerImages": {}}))
    return folder


def test_assets_are_read_from_the_bucket_in_the_parameter(assembly: Path, tmp_path: Path) -> None:
    """Every reference to the CDK's bucket becomes the parameter, and keys start with the prefix."""
    written = write_standalone(assembly, "duetime-prod", tmp_path / "out")
    template = json.loads(written.template.read_text())
    code = template["Resources"]["Worker"]["Properties"]["Code"]
    assert code == {"S3Bucket": {"Ref": "AssetsBucket"}, "S3Key": {"Fn::Sub": f"${{AssetsPrefix}}{CODE}"}}
    content = template["Resources"]["Layer"]["Properties"]["Content"]
    assert content == {"S3Bucket": {"Ref": "AssetsBucket"}, "S3Key": {"Fn::Sub": f"${{AssetsPrefix}}{LAYER}"}}
    assert template["Outputs"] == TEMPLATE["Outputs"]
    assert set(template["Parameters"]) == {"Own", "AssetsBucket", "AssetsPrefix"}
    assert "Rules" not in template
    assert written.assets == 2
    assert {path.name for path in (tmp_path / "out" / "assets").iterdir()} == {CODE, LAYER}


def test_archives_of_code_are_reproducible(assembly: Path, tmp_path: Path) -> None:
    """Lambda's user can read each file, an unchanged asset has unchanged bytes, and former assets are removed."""
    packed = []
    for name in ("one", "two"):
        (tmp_path / name / "assets").mkdir(parents=True)
        (tmp_path / name / "assets" / "former.zip").touch()
        write_standalone(assembly, "duetime-prod", tmp_path / name)
        archive = tmp_path / name / "assets" / CODE
        packed.append(archive.read_bytes())
        with zipfile.ZipFile(archive) as opened:
            assert [(each.filename, each.external_attr >> 16) for each in opened.infolist()] == [
                ("worker/handler.py", 0o644)
            ]
        assert not (tmp_path / name / "assets" / "former.zip").exists()
    assert packed[0] == packed[1]


def test_a_stack_with_values_from_other_stacks_is_rejected() -> None:
    """A stack that imports values from other stacks is refused, because the values would be missing."""
    uses = {"Resources": {"A": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::ImportValue": "x"}}}}}
    with pytest.raises(StackNotStandalone, match="imports values of other stacks"):
        standalone(uses, ())


def test_images_and_templates_that_are_too_large_are_rejected(
    assembly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images, which are not files, are refused, and so is a template that is too large."""
    monkeypatch.setattr(standalone_template, "LARGEST_TEMPLATE", 100)
    with pytest.raises(StackNotStandalone, match="CloudFormation allows 100"):
        write_standalone(assembly, "duetime-prod", tmp_path / "out")
    (assembly / "duetime-prod.assets.json").write_text(json.dumps({"files": {}, "dockerImages": {"a": {}}}))
    with pytest.raises(StackNotStandalone, match="container images"):
        write_standalone(assembly, "duetime-prod", tmp_path / "out")


def test_the_command_writes_the_synthesized_template(
    assembly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command synthesizes the named environment, and the output says what to do next."""
    (tmp_path / "cdk.json").write_text("{}")
    manifest = {"artifacts": {"a": {"type": "aws:cloudformation:stack", "properties": {"stackName": "duetime-prod"}}}}
    (assembly / "manifest.json").write_text(json.dumps(manifest))
    command = tmp_path / "node_modules" / ".bin" / "cdk"
    command.parent.mkdir(parents=True)
    command.write_text('#!/bin/sh\necho "$@" > calls.txt\n')
    command.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["template", "-e", "prod", "--folder", "dist"])
    assert done.exit_code == 0, done.output
    assert "-c env=prod" in (tmp_path / "calls.txt").read_text()
    assert "2 assets" in done.output
    assert "AssetsBucket" in done.output
    assert (tmp_path / "dist" / "template.json").is_file()
    assert CliRunner().invoke(app, ["template", "--stack", "other"]).exit_code == 2
    command.write_text("#!/bin/sh\nexit 1\n")
    assert CliRunner().invoke(app, ["template"]).exit_code == 1
