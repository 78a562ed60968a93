"""Requests with `If-Match` can be repeated after the first response was lost."""

from __future__ import annotations

from hashlib import sha256

import pytest

from tests.scenarios.scenario import HOUR, PLAIN, SECOND, UNDONE
from tests.scenarios.schedules import PATH, Schedules

LARGE = "".join(sha256(str(number).encode()).hexdigest() for number in range(400))
"""A payload that is too large for the record."""


@pytest.mark.parametrize("payload", ["small", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_repeated_schedule_request_succeeds_at_any_version(verb: str, payload: str) -> None:
    """A repeated schedule request succeeds at any version (RFC 9110, 13.1.1), and each response has the payload."""
    with Schedules() as schedules:
        schedules.make(task={"type": PLAIN, "payload": payload})
        if verb == "resume":
            schedules.control("pause")
        version = {"If-Match": f'"{schedules.schedule()["version"]}"'}
        answers = [schedules.ask("POST", f"{PATH}/{verb}", None, headers=version) for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 200]
        assert len({each.body["version"] for each in answers}) == 1
        assert [each.body["task"].get("payload") for each in answers] == [payload] * 3


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
def test_a_repeated_task_request_succeeds_without_a_write(verb: str) -> None:
    """A repeated task request succeeds, and does not write the task again."""
    with Schedules() as schedules:
        task = schedules.create(HOUR)
        if verb == "resume":
            schedules.do(task, "pause")
        version = {"If-Match": f'"{schedules.record(task).version}"'}
        answers = [schedules.ask("POST", f"/v1/tasks/{task}/{verb}", None, headers=version) for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 200]
        assert len({each.body["version"] for each in answers}) == 1


@pytest.mark.parametrize(("verb", "before"), [("pause", None), ("resume", "pause")])
def test_a_different_request_with_another_version_changes_nothing(verb: str, before: str | None) -> None:
    """If `If-Match` names a different version, neither a task nor a schedule is changed."""
    with Schedules() as schedules:
        schedules.make()
        task = schedules.create(HOUR)
        if before:
            schedules.control(before)
            schedules.do(task, before)
        for path in (PATH, f"/v1/tasks/{task}"):
            version = schedules.ask("GET", path).body["version"]
            assert schedules.ask("POST", f"{path}/{verb}", None, headers={"If-Match": '"77"'}).status == 412
            assert schedules.ask("GET", path).body["version"] == version


def test_ids_in_parameters_may_be_in_lower_case() -> None:
    """The parameters `ids` and `parent` accept ids in lower case."""
    with Schedules() as schedules:
        task = schedules.create(HOUR)
        found = schedules.ask("GET", "/v1/tasks", query=f"ids={task.lower()}").body["tasks"]
        assert [each["id"] for each in found] == [task]
        assert schedules.ask("GET", "/v1/tasks", query=f"parent={task.lower()}").status == 200
        assert schedules.ask("GET", "/v1/tasks", query="ids=no-id").status == 400


@pytest.mark.parametrize("verb", ["run", "retry", "rollback"])
def test_a_repeated_request_with_its_original_version_starts_no_second_run(verb: str) -> None:
    """A repeated run, retry or rollback request with its original version succeeds and starts no second run."""
    with Schedules() as schedules:
        if verb == "run":
            task = schedules.create(HOUR)
        else:
            schedules.fail()
            task = schedules.create(kind=UNDONE, retry={"max_attempts": 1})
            schedules.run(5 * SECOND)
        version = {"If-Match": f'"{schedules.record(task).version}"'}
        path, fence = f"/v1/tasks/{task}/{verb}", schedules.record(task).fence
        first = schedules.ask("POST", path, None, headers=version)
        assert first.status in {200, 202}, first.body
        at_once = schedules.ask("POST", path, None, headers=version)
        schedules.run(5 * SECOND)
        ended = schedules.record(task)
        later = schedules.ask("POST", path, None, headers=version)
        assert (at_once.status, later.status) == (first.status, first.status)
        assert schedules.record(task).version == ended.version
        assert ended.fence == fence + 1
        other = {"If-Match": '"77"'}
        assert schedules.ask("POST", path, None, headers=other).status == 412


def test_a_different_request_with_an_old_version_is_rejected() -> None:
    """A different request is refused if its version is older than another user's run request."""
    with Schedules() as schedules:
        task = schedules.create(HOUR)
        version = {"If-Match": f'"{schedules.record(task).version}"'}
        path = f"/v1/tasks/{task}/run"
        assert schedules.ask("POST", path, {"reason": "one"}, headers=version).status == 200
        assert schedules.ask("POST", path, {"reason": "other"}, headers=version).status == 412
