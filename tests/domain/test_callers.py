from __future__ import annotations

import pytest

from duetime.domain.callers import Caller, Role
from duetime.domain.errors import OperatorRequired, RoleRequired


def test_a_role_includes_others() -> None:
    """Operators can write, writers can read, administrators can do everything, and workers can only work."""
    assert Role.READER.included == {Role.READER}
    assert Role.WRITER.included == {Role.READER, Role.WRITER}
    assert Role.WORKER.included == {Role.WORKER}
    assert Role.OPERATOR.included == {Role.READER, Role.WRITER, Role.OPERATOR}
    assert Role.ADMIN.included == set(Role)


def test_a_caller_without_the_role_is_rejected_with_the_role() -> None:
    """The error names the missing role, or says that other owners are affected; an unknown caller has no role."""
    with pytest.raises(RoleRequired, match="'writer'"):
        Caller("ann", frozenset({Role.READER, Role.WORKER})).require(Role.WRITER)
    with pytest.raises(OperatorRequired, match="it affects other owners"):
        Caller("ann", frozenset({Role.WRITER})).require(Role.OPERATOR)
    Caller("ann", frozenset({Role.ADMIN})).require(Role.OPERATOR)
    assert not any(Caller("ann").has(role) for role in Role)
