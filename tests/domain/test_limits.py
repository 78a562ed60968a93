from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import duetime
import duetime_cdk
import duetime_client
import duetime_common
import functions
from duetime.domain import limits, operating_parameters

if TYPE_CHECKING:
    from types import ModuleType

_PACKAGES = (duetime, duetime_cdk, duetime_client, duetime_common, functions)
_WORDS = {
    path: set(re.findall(r"\w+", path.read_text()))
    for package in _PACKAGES
    for path in Path(package.__path__[0]).rglob("*.py")
}


@pytest.mark.parametrize(
    "module", [limits, operating_parameters, duetime_common.limits], ids=lambda module: module.__name__
)
def test_every_limit_is_applied(module: ModuleType) -> None:
    """Every limit is used somewhere in the code, so that no promised limit is ignored."""
    own = Path(str(module.__file__))
    assigned = [node for node in ast.parse(own.read_text()).body if isinstance(node, ast.Assign)]
    names = {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}
    elsewhere = set().union(*(words for path, words in _WORDS.items() if path != own))
    assert names, "it has no limits"
    assert {name for name in names - elsewhere if name.isupper()} == set()
