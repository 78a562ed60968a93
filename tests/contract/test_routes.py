from __future__ import annotations

import re
from collections import Counter

import pytest

from duetime.contract import groups, quotas, switches
from duetime.contract.http.operation import IF_MATCH, IF_NONE_MATCH, KEY, LEASE, Operation, operation_at
from duetime.contract.http.problems import KINDS
from duetime.contract.http.request_errors import FieldsInvalid, MethodUnsupported, PathNotFound
from duetime.contract.http.validation_errors import validated
from duetime.contract.openapi.document import OPERATIONS, parameters
from duetime.contract.schedules import operations as schedules
from duetime.contract.schedules.bodies import RESERVED_NAMES, ScheduleCreate
from duetime.contract.tasks import operations as tasks
from duetime.domain import errors


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.id)
def test_a_request_finds_the_operation_of_its_path_and_method(operation: Operation) -> None:
    """Each declared operation is found by its path and method, with the values of its parameters."""
    wanted = {name: f"<{name}>" for name in re.findall(r"\{(\w+)\}", operation.path)}
    assert operation_at(operation.method, operation.url(**wanted)) == (operation, wanted)


def test_the_name_of_a_switch_can_have_slashes() -> None:
    """Types and owners may contain slashes in paths, which the gateway decodes; other parameters may not."""
    found = operation_at("GET", "/v1/switches/owner/1:role/a/b")
    assert found == (switches.READ, {"scope": "owner", "name": "1:role/a/b"})
    with pytest.raises(PathNotFound):
        operation_at("GET", "/v1/locks/a/b")


def test_a_fixed_path_takes_precedence_over_a_pattern() -> None:
    """A fixed path that also matches a pattern accepts only the methods declared for the fixed path."""
    assert operation_at("POST", "/v1/tasks/batch")[0] is tasks.CREATE_MANY
    with pytest.raises(MethodUnsupported) as refused:
        operation_at("PUT", "/v1/tasks/batch")
    assert refused.value.allowed == ("POST", "OPTIONS")


def test_the_error_for_an_unsupported_method_lists_the_supported_methods() -> None:
    """The error for an unsupported method lists the methods declared for the path, in the usual order."""
    with pytest.raises(MethodUnsupported) as refused:
        operation_at("POST", "/v1/calendars/uk")
    assert refused.value.allowed == ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")


@pytest.mark.parametrize("path", ["", "/", "/v1//", "/v1/tasks//", "/v1/tasks//pause", "/v1/tasks/a/b", "v1/tasks"])
def test_an_undeclared_path_is_unknown(path: str) -> None:
    """A path with an additional, missing or empty part is unknown."""
    with pytest.raises(PathNotFound):
        operation_at("GET", path)


def test_names_and_routes_are_each_declared_once() -> None:
    """No two operations have the same name or the same method and path."""
    for counts in (Counter(one.id for one in OPERATIONS), Counter(one.route for one in OPERATIONS)):
        assert counts.most_common(1)[0][1] == 1


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.id)
def test_the_declaration_of_every_operation_is_consistent(operation: Operation) -> None:
    """Every error has a status, headers imply their errors, and operations on named resources can respond with 404."""
    declared = operation.all_errors
    assert len(set(declared)) == len(declared)
    assert set(declared) <= set(KINDS)
    mismatches = {
        errors.VersionMismatch,
        errors.ScheduleVersionMismatch,
        errors.CalendarVersionMismatch,
        errors.DefinitionVersionMismatch,
    }
    assert IF_MATCH not in operation.headers or mismatches & set(declared)
    assert (IF_NONE_MATCH in operation.all_headers) == (
        "ETag" in operation.successes[0].headers
    ) or not operation.is_safe
    assert KEY not in operation.headers or operation.body is not None
    assert operation.accepted is None or operation.accepted.status == (201 if operation.method == "PUT" else 202)
    not_found = [error for error in declared if KINDS[error].status == 404]
    # A PUT may create the resource, a key's object may have been deleted, and a lease may have ended.
    names_something = "{" in operation.path and operation not in {switches.PUT, quotas.PUT, groups.CLOSE}
    names_something |= operation is schedules.CREATE or LEASE in operation.headers
    assert bool(not_found) == names_something


def _allows(operation: Operation, name: str, word: str) -> bool:
    """Return whether a parameter of a path can be a given word, according to the document."""
    (schema,) = (each["schema"] for each in parameters(operation) if each["name"] == name)
    return re.fullmatch(schema["pattern"].strip("^$"), word) is not None if "pattern" in schema else True


def _contested(fixed: Operation, named: Operation) -> set[tuple[str, str]]:
    """Return resources, each with a fixed word in one path that a request could use as a name in the other."""
    mine, others = fixed.path.split("/"), named.path.split("/")
    if len(mine) != len(others):
        return set()
    found = set()
    for index, (word, other) in enumerate(zip(mine, others, strict=True)):
        if word.startswith("{") and not other.startswith("{"):
            if not _allows(fixed, word[1:-1], other):
                return set()
        elif other.startswith("{") and not word.startswith("{"):
            if not _allows(named, other[1:-1], word):
                return set()
            found.add((others[index - 1], word))
        elif word != other and not word.startswith("{"):
            return set()
    return found


def test_a_name_that_is_a_fixed_word_of_a_path_is_rejected() -> None:
    """A name that is a fixed word in another path is refused, and no id can be a fixed word."""
    contested = set().union(*(_contested(fixed, named) for fixed in OPERATIONS for named in OPERATIONS))
    assert contested == {("schedules", word) for word in RESERVED_NAMES}
    for word in RESERVED_NAMES:
        with pytest.raises(FieldsInvalid, match=f"should not be {word}"):
            validated(ScheduleCreate, {"name": word, "cron": "30 1 * * *", "task": {"type": "report"}})


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/topologies/definitions", ("GET", "HEAD", "OPTIONS")),
        ("POST", "/v1/topologies/definitions/retry", ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")),
        ("GET", "/v1/tasks/batch", ("POST", "OPTIONS")),
        ("PATCH", "/v1/schedules/preview", ("POST", "OPTIONS")),
    ],
)
def test_a_fixed_word_of_a_path_is_not_routed_as_a_name(method: str, path: str, allowed: tuple[str, ...]) -> None:
    """If a fixed path does not support a method, the request is refused, and the fixed word is not routed as a name."""
    with pytest.raises(MethodUnsupported) as refused:
        operation_at(method, path)
    assert refused.value.allowed == allowed
