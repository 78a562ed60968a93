from __future__ import annotations

import json
from typing import Any

import pytest

from duetime.contract.http.request_errors import FieldsInvalid
from duetime.contract.http.request_json import read
from duetime.contract.leases import lease_failure
from duetime.contract.tasks import operations
from duetime.contract.tasks.operations import Notice, Report
from duetime.domain.limits import MAX_ENCRYPTED_TEXT_LENGTH, MAX_ERROR_MESSAGE_LENGTH, MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.attempt_results import Failed, Succeeded
from duetime.domain.tasks.task import Progress
from duetime_common.payload_codecs import ENCRYPTED_TEXT

LONGEST_ENCRYPTED = ENCRYPTED_TEXT.ljust(MAX_ENCRYPTED_TEXT_LENGTH, "A")
ERROR = {"type": "Timeout", "message": "no answer"}

GOOD_REPORTS: list[tuple[str, object]] = [
    ("reject_fields", {}),
    ("heartbeat", {"fence": 7}),
    ("progress", {"fence": 7, "percent": 0}),
    ("progress", {"fence": 7, "percent": 100, "message": "done"}),
    ("progress", {"fence": 7, "percent": 100, "message": LONGEST_ENCRYPTED}),
    ("notice", {"fence": 7, "outcome": "succeeded"}),
    ("notice", {"fence": 7, "outcome": "succeeded", "result": {"rows": [1, None]}}),
    ("notice", {"fence": 7, "outcome": "failed", "error": {"type": "Boom"}}),
    ("notice", {"fence": 7, "outcome": "failed", "error": ERROR, "retriable": False}),
]
BAD_REPORTS: list[tuple[str, object, list[str]]] = [
    ("reject_fields", {"reason": "x"}, ["reason"]),
    ("reject_fields", [], ["body"]),
    ("reject_fields", None, ["body"]),
    ("heartbeat", {}, ["fence"]),
    ("heartbeat", {"fence": 0}, ["fence"]),
    ("heartbeat", {"fence": "7"}, ["fence"]),
    ("heartbeat", {"fence": True}, ["fence"]),
    ("heartbeat", {"fence": 7, "percent": 5}, ["percent"]),
    ("progress", {"fence": 7}, ["percent"]),
    ("progress", {"fence": 7, "percent": 101}, ["percent"]),
    ("progress", {"fence": 7, "percent": -1}, ["percent"]),
    ("progress", {"fence": 7, "percent": 1.5}, ["percent"]),
    ("progress", {"fence": 7, "percent": 1, "message": "m" * 65}, ["message"]),
    ("progress", {"fence": 7, "percent": 1, "message": LONGEST_ENCRYPTED + "A"}, ["message"]),
    ("progress", {"fence": 7, "percent": 1, "message": "nul\x00"}, ["message"]),
    ("notice", {"fence": 7}, ["outcome"]),
    ("notice", {"outcome": "succeeded"}, ["fence"]),
    ("notice", {"fence": 7, "outcome": "lost"}, ["outcome"]),
    ("notice", {"fence": 7, "outcome": "failed"}, ["error"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": None}, ["error"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": "Boom"}, ["error"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": {}}, ["error.type"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": {"kind": "Boom"}}, ["error.type", "error.kind"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": {"type": ""}}, ["error.type"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": {"type": "B" * 65}}, ["error.type"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": {"type": "nul\x00"}}, ["error.type"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": ERROR, "result": 1}, ["result"]),
    ("notice", {"fence": 7, "outcome": "failed", "error": ERROR, "retriable": "no"}, ["retriable"]),
    ("notice", {"fence": 7, "outcome": "succeeded", "error": ERROR}, ["error"]),
    ("notice", {"fence": 7, "outcome": "succeeded", "retriable": False}, ["retriable"]),
    ("notice", {"fence": 7, "outcome": "succeeded", "results": 1}, ["results"]),
]


def decoded(name: str, body: object) -> Any:  # noqa: ANN401 - whatever that body is read as
    """Return a body as the function with this name reads it."""
    return getattr(operations, name)(read(json.dumps(body)))


@pytest.mark.parametrize(("name", "body"), GOOD_REPORTS)
def test_a_report_is_accepted_with_its_fence(name: str, body: dict[str, Any]) -> None:
    """For each kind of report, the smallest and the fullest report are accepted, and the fence is read."""
    report = decoded(name, body)
    assert (report.fence if report else None) == body.get("fence")


@pytest.mark.parametrize(("name", "body", "fields"), BAD_REPORTS)
def test_the_error_for_an_invalid_report_names_its_fields(name: str, body: object, fields: list[str]) -> None:
    """If a report is refused, the error names exactly the invalid fields."""
    with pytest.raises(FieldsInvalid) as refusal:
        decoded(name, body)
    assert [fault.field for fault in refusal.value.faults] == fields


def test_a_notification_becomes_the_end_of_an_attempt() -> None:
    """A result is stored as compact JSON; an error's text is stored unchanged or, if too long, is cut and marked."""
    assert decoded("notice", GOOD_REPORTS[6][1]) == Notice(7, Succeeded(b'{"rows":[1,null]}'))
    assert decoded("notice", GOOD_REPORTS[5][1]) == Notice(7, Succeeded(b"null"))
    assert decoded("notice", GOOD_REPORTS[8][1]) == Notice(
        7, Failed(TaskError("Timeout", "no answer"), retriable=False)
    )
    long = decoded("notice", {"fence": 1, "outcome": "failed", "error": {"type": "Boom", "message": "m" * 9_999}})
    assert len(long.ending.error.message) == MAX_ERROR_MESSAGE_LENGTH
    assert long.ending.error.message.endswith("[cut]")


def test_encrypted_texts_are_neither_cut_nor_redacted() -> None:
    """Encrypted strings are neither truncated nor redacted, because part of an encrypted string cannot be decrypted."""
    raised = f"{ENCRYPTED_TEXT}abcdtoken=="
    body = {"error": {"type": "Boom", "message": LONGEST_ENCRYPTED}, "traceback": raised}
    failed = lease_failure(read(json.dumps(body)))
    assert isinstance(failed, Failed)
    assert (failed.error.message, failed.traceback) == (LONGEST_ENCRYPTED, raised)
    assert decoded("progress", GOOD_REPORTS[4][1]) == Report(7, Progress(100, LONGEST_ENCRYPTED))
    assert Progress(100, LONGEST_ENCRYPTED).message == LONGEST_ENCRYPTED
    plain = lease_failure(read(json.dumps({**body, "traceback": "token=abc"})))
    assert isinstance(plain, Failed)
    assert plain.traceback == "token=[redacted]"


def test_a_progress_report_is_decoded() -> None:
    """A percentage and a message are decoded; a heartbeat has no percentage and no message."""
    assert decoded("progress", {"fence": 7, "percent": 40, "message": "half"}) == Report(7, Progress(40, "half"))
    assert decoded("heartbeat", {"fence": 7}) == Report(7, None)


def test_a_result_above_the_limit_is_rejected() -> None:
    """A result of exactly the maximum size is accepted; a larger result is refused with its field before any write."""
    body = {"fence": 7, "outcome": "succeeded", "result": "x" * (MAX_RESULT_BYTES - 2)}
    assert len(decoded("notice", body).ending.result) == MAX_RESULT_BYTES
    with pytest.raises(FieldsInvalid, match="result: is larger"):
        decoded("notice", {**body, "result": "x" * (MAX_RESULT_BYTES - 1)})


def test_invalid_json_values_in_a_report_are_rejected_with_their_position() -> None:
    """If a report contains NaN or a lone surrogate, it is refused with the position."""
    for text, field in (
        ('{"fence": 7, "outcome": "succeeded", "result": {"a": NaN}}', "result.a"),
        ('{"fence": 7, "outcome": "failed", "error": {"type": "\\ud800"}}', "error.type"),
    ):
        with pytest.raises(FieldsInvalid) as refusal:
            operations.notice(read(text))
        assert [fault.field for fault in refusal.value.faults] == [field]
