"""Writes a synthesized stack as a template with assets that tools other than the CDK can deploy."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TEMPLATE, ASSETS = "template.json", "assets"
"""The template, and the folder of its assets."""
BUCKET, PREFIX = "AssetsBucket", "AssetsPrefix"
"""The template's parameters."""
LARGEST_TEMPLATE = 1_000_000
"""Largest template in S3, in bytes (Source: AWS CloudFormation User Guide, "Understand CloudFormation quotas")."""
_BOOTSTRAP = "BootstrapVersion"
_CHECK = "CheckBootstrapVersion"
_TIME = (1980, 1, 1, 0, 0, 0)
"""The modification time of all files in archives, so that identical contents give identical archives."""
_PARAMETERS = {
    BUCKET: {"Type": "String", "Description": "Bucket in the stack's Region that holds the assets."},
    PREFIX: {"Type": "String", "Default": "", "Description": "Prefix of the assets' keys, such as duetime/1/."},
}


class StackNotStandalone(ClientError):
    """A stack cannot be deployed on its own."""


@dataclass(frozen=True, slots=True)
class StandaloneTemplate:
    """The files that were written."""

    template: Path
    assets: int
    bytes: int


def write_standalone(assembly: Path, stack: str, output: Path) -> StandaloneTemplate:
    """Write a stack's template and assets into a folder.

    Args:
        assembly: the folder that the CDK has written.
        stack: the name of the stack.
        output: the folder to write; existing assets in it are removed.

    Raises:
        StackNotStandalone: the stack imports values of other stacks, has container images, or is too large.
    """
    template = json.loads((assembly / f"{stack}.template.json").read_text(encoding="utf-8"))
    listed = json.loads((assembly / f"{stack}.assets.json").read_text(encoding="utf-8"))
    if listed.get("dockerImages"):
        raise StackNotStandalone(f"the stack {stack!r} has container images, which the CDK's command must upload")
    shutil.rmtree(output / ASSETS, ignore_errors=True)
    (output / ASSETS).mkdir(parents=True)
    files = [each for each in listed["files"].values() if not each["source"]["path"].endswith(".template.json")]
    keys = {destination["objectKey"] for each in files for destination in each["destinations"].values()}
    for each in files:
        (destination,) = each["destinations"].values()
        _pack(assembly / each["source"]["path"], output / ASSETS / destination["objectKey"])
    made = json.dumps(standalone(template, keys), indent=1)
    if len(made) > LARGEST_TEMPLATE:
        raise StackNotStandalone(f"the template has {len(made)} bytes; CloudFormation allows {LARGEST_TEMPLATE}")
    (output / TEMPLATE).write_text(made, encoding="utf-8")
    return StandaloneTemplate(output / TEMPLATE, len(files), len(made))


def standalone(template: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return a template that takes its asset bucket from a parameter, and needs no `cdk bootstrap`.

    Raises:
        StackNotStandalone: the stack imports values of other stacks.
    """
    if '"Fn::ImportValue"' in json.dumps(template):
        raise StackNotStandalone("the stack imports values of other stacks: deploy them together, with the CDK")
    parameters = {name: each for name, each in template.get("Parameters", {}).items() if name != _BOOTSTRAP}
    rules = {name: each for name, each in template.get("Rules", {}).items() if name != _CHECK}
    kept = {name: each for name, each in template.items() if name not in {"Parameters", "Rules"}}
    return {
        **{name: _moved(each, frozenset(keys)) for name, each in kept.items()},
        "Parameters": {**parameters, **_PARAMETERS},
        **({"Rules": rules} if rules else {}),
    }


def _moved(value: Any, keys: frozenset[str]) -> Any:  # noqa: ANN401 - a part of a template
    """A part of a template with the parameters in place of the CDK's bucket and keys."""
    if isinstance(value, str) and value in keys:
        return {"Fn::Sub": f"${{{PREFIX}}}{value}"}
    if isinstance(value, list):
        return [_moved(each, keys) for each in value]
    if not isinstance(value, dict):
        return value
    moved = {name: _moved(each, keys) for name, each in value.items()}
    for name in ("S3Bucket", "Bucket", "BucketName"):
        if "cdk-" in str(moved.get(name)) and "-assets-" in str(moved.get(name)):
            moved[name] = {"Ref": BUCKET}
    return moved


def _pack(source: Path, archive: Path) -> None:
    """Copy a file, or compress a folder."""
    if source.is_file():
        shutil.copyfile(source, archive)
        return
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(each for each in source.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(source).as_posix(), _TIME)
            # Every user may read the files, because Lambda runs code as another user.
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())
