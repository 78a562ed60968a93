from __future__ import annotations

import pytest

from duetime.domain.callers import OwnerPatterns
from duetime.domain.errors import FieldInvalid, TypeNotPulled
from duetime.domain.limits import MAX_PULLED_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS
from duetime.domain.tasks.allowed_targets import TargetRules
from duetime.domain.tasks.pull_leases import Pullers
from duetime.domain.tasks.targets import HandlerTarget, PullTarget
from duetime.domain.tasks.type_defaults import TaskSpec

RULES = TargetRules({"resize"})
PULLERS = Pullers({"resize": OwnerPatterns(("*",)), "report": OwnerPatterns(("ann", "team-*"))})


@pytest.mark.parametrize(
    ("caller", "types"), [("bob", ["resize"]), ("ann", ["resize", "report"]), ("team-b", ["report"]), ("bob", [])]
)
def test_a_pulled_type_is_open_to_everyone_or_to_named_callers(caller: str, types: list[str]) -> None:
    """A pulled type is open to everyone, or only to the named callers."""
    PULLERS.check(caller, types)


@pytest.mark.parametrize("types", [["report"], ["resize", "report"], ["unheard-of"], ["*"], [""]])
def test_a_request_with_a_forbidden_type_is_rejected_with_the_type(types: list[str]) -> None:
    """If one of the requested types is forbidden, the complete request is refused, and the error names this type."""
    with pytest.raises(TypeNotPulled, match=repr(types[-1]).replace("*", r"\*")):
        PULLERS.check("bob", types)


def test_a_task_without_a_target_is_pulled_if_its_type_is_pulled() -> None:
    """A task without a target waits for workers if its type is pulled, and otherwise calls its handler."""
    assert RULES.target_of("ann", TaskSpec("resize")) == PullTarget()
    assert RULES.target_of("ann", TaskSpec("report")) == HandlerTarget()
    assert RULES.target_of("ann", TaskSpec("resize", timeout_seconds=MAX_PULLED_TIMEOUT_SECONDS)) == PullTarget()
    assert (
        RULES.target_of("ann", TaskSpec("resize", target=HandlerTarget(), rollback_on_failure=True)) == HandlerTarget()
    )


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (TaskSpec("report", target=PullTarget()), "target"),
        (TaskSpec("resize", rollback_on_failure=True), "rollback_on_failure"),
        (TaskSpec("resize", target=HandlerTarget(), timeout_seconds=MAX_TIMEOUT_SECONDS + 1), "timeout_seconds"),
        (TaskSpec("report", timeout_seconds=MAX_TIMEOUT_SECONDS + 1), "timeout_seconds"),
    ],
)
def test_unsupported_options_of_pull_targets_are_rejected(spec: TaskSpec, field: str) -> None:
    """Pull targets for other types, rollbacks by pull workers and timeouts that are too long are refused."""
    with pytest.raises(FieldInvalid) as refused:
        RULES.target_of("ann", spec)
    assert refused.value.field == field
