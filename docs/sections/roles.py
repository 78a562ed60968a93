"""Generates the table of API roles, with the operations that each role allows."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from docs.sections.markdown import code, table
from duetime.contract.openapi.descriptions import parts_of
from duetime.contract.openapi.document import OPERATIONS
from duetime.domain.callers import Role

if TYPE_CHECKING:
    from duetime.contract.http.operation import Operation


def role_table() -> str:
    """Return a table of the roles, with the purpose of each role and the operations that need it."""
    _, meanings = parts_of(inspect.getdoc(Role) or "")
    rows = []
    for role in Role:
        included = [code(each) for each in Role if each in role.included and each is not role]
        rows.append((code(role), meanings[role.name], ", ".join(included) or "none", _operations(role)))
    return table(("role", "may", "includes", "operations that need it"), rows)


def _operations(role: Role) -> str:
    """List the operations that need a role.

    For readers and writers, the list ends with a phrase for all other operations that read or change something.
    """
    usual = {Role.READER: "all other operations that read", Role.WRITER: "all other operations that change something"}
    own = dict.fromkeys(_named(one) for one in OPERATIONS if one.role is role)
    return ", ".join([*own, *([usual[role]] if role in usual else [])]) or "none"


def _named(one: Operation) -> str:
    """Return the operation's name, or its collection's name if all operations in it need the same role."""
    collection = "/".join(one.route.partition(" ")[2].split("/")[:3])
    roles = {each.role for each in OPERATIONS if each.route.partition(" ")[2].startswith(collection)}
    return f"all of {code(collection)}" if len(roles) == 1 else code(one.route)
