from __future__ import annotations

import inspect

from duetime.contract.http import request_errors
from duetime.contract.http.problems import KINDS, code_of, kind_of, problem_of
from duetime.domain import errors
from duetime.domain.errors import FieldInvalid, RequestError, Unavailable

INSTANCE = "urn:duetime:request:abc"


def test_every_request_error_has_a_problem() -> None:
    """Each error that a request can cause is in the table of problems, so that no such error becomes a 500."""
    raised = {
        member
        for module in (errors, request_errors)
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, RequestError | Unavailable) and member not in (RequestError, request_errors.FaultyRequest)
    }
    assert raised == set(KINDS)


def test_a_problem_code_always_has_the_same_status() -> None:
    """A code always has the same status and title; the status is 4xx unless the API or the target must be fixed."""
    kinds = list(KINDS.values())
    assert len({kind.code for kind in kinds}) == len(set(kinds))
    others = {"unavailable": 503, "region_not_active": 503, "target_unreachable": 502, "target_timeout": 504}
    assert all(400 <= kind.status < 500 or others[kind.code] == kind.status for kind in kinds)


def test_a_problem_lists_each_field_with_its_reason() -> None:
    """Faults that the domain finds are listed with field and reason, and are summarized in the detail."""
    problem = problem_of(FieldInvalid("due_at", "is more than ten years ahead"), INSTANCE)
    assert problem["status"] == 422
    assert problem["errors"] == [{"field": "due_at", "reason": "is more than ten years ahead", "code": "invalid"}]
    assert "due_at: is more than ten years ahead" in problem["detail"]
    assert problem["instance"] == INSTANCE


def test_internal_error_messages_are_not_revealed() -> None:
    """The response to an unexpected error or an unavailable service does not reveal the internal message."""
    for error in (ValueError("secret"), Unavailable("secret table")):
        assert "secret" not in str(problem_of(error, INSTANCE))
    assert kind_of(KeyError()).status == 500


def test_an_error_counted_by_a_bulk_operation_has_its_code() -> None:
    """A bulk operation counts errors by class, and reports an unknown class as refused."""
    assert code_of("StateConflict") == "state_conflict"
    assert code_of("VersionMismatch") == "version_mismatch"
    assert code_of("NeverHeardOf") == "refused"
