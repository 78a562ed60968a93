from __future__ import annotations

import pytest

from duetime.domain.callers import Admins
from duetime.domain.locks import LockClaim, LockName
from duetime.domain.switches import ALL_TASKS, SYSTEM, Switch, Switches, SwitchKey, SwitchScope
from duetime.domain.tasks.task_options import LockScope
from tests.domain.factories import task

REPORTS = SwitchKey(SwitchScope.TYPE, "report")
ANN = SwitchKey(SwitchScope.OWNER, "ann")
MAIL_OF_ANN = task(type="mail", owner="ann")
REPORT_OF_BOB = task(type="report", owner="bob")
MAIL_OF_BOB = task(type="mail", owner="bob")


def having(*switches: Switch) -> Switches:
    """The given switches, set one after the other."""
    found = Switches()
    for switch in switches:
        found = found.with_switch(switch)
    return found


@pytest.mark.parametrize(
    ("key", "held"), [(ALL_TASKS, (True, True, True)), (REPORTS, (False, True, False)), (ANN, (True, False, False))]
)
def test_a_stop_covers_only_its_own_scope(key: SwitchKey, held: tuple[bool, ...]) -> None:
    """A stop covers all tasks, a type or an owner, and the verdict names the stop's scope and reason."""
    switches = having(Switch(key, stopped=True, reason="a bad release"))
    verdicts = [switches.verdict(each) for each in (MAIL_OF_ANN, REPORT_OF_BOB, MAIL_OF_BOB)]
    assert verdicts == [f"{key} is stopped: a bad release" if one else None for one in held]


def test_stopping_an_owner_does_not_stop_a_type_with_that_name() -> None:
    """A stop of an owner does not stop a type with the same name."""
    switches = having(Switch(SwitchKey(SwitchScope.OWNER, "report"), stopped=True))
    assert switches.verdict(REPORT_OF_BOB) is None


def test_a_limit_on_a_type_or_owner_is_an_unowned_lock() -> None:
    """A limit on a type or an owner is a lock with that number of holders, in a namespace that no owner can use."""
    switches = having(Switch(REPORTS, max_concurrent=5), Switch(SwitchKey(SwitchScope.OWNER, "bob"), max_concurrent=2))
    assert switches.caps(REPORT_OF_BOB) == (
        LockClaim(LockName(SYSTEM, "type/report"), 5, LockScope.TASK),
        LockClaim(LockName(SYSTEM, "owner/bob"), 2, LockScope.TASK),
    )
    assert switches.caps(MAIL_OF_ANN) == ()
    assert switches.verdict(REPORT_OF_BOB) is None


def test_a_switch_without_an_effect_is_removed() -> None:
    """Setting a switch that has no effect is the same as removing it."""
    stopped = having(Switch(REPORTS, stopped=True), Switch(ANN, max_concurrent=1))
    assert stopped.with_switch(Switch(REPORTS)).by_key == stopped.without(REPORTS).by_key
    assert list(stopped.without(REPORTS).by_key) == [ANN]


def test_only_the_named_identities_are_operators() -> None:
    """By default nobody is an operator; a name means exactly that identity, and `*` means everybody."""
    for names, callers in ((frozenset[str](), ""), (frozenset({"ann"}), "ann"), (frozenset({"*"}), "ann bob *")):
        operators = Admins(names)
        for caller in ("ann", "bob", "an", ""):
            is_one = caller in callers.split() or "*" in callers.split()
            assert operators.include(caller) == is_one
