"""Tests of the ten tasks and the two schedules, in virtual time."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from duetime_testing import Duetime

from photo_lab.partners import ALERTS
from photo_lab.services import SERVICES

ORDER = {"order": "7", "email": "ada@example.org", "amount": 50, "photos": ["a", "b"]}
SCHEDULES = Path(__file__).parents[1] / "schedules.jsonl"


def test_an_order_is_charged_confirmed_printed_and_published(duetime: Duetime) -> None:
    """The task that places an order starts all other tasks, directly or through other tasks."""
    duetime.client.tasks.create("order.place", payload=ORDER)
    duetime.advance(minutes=1)
    assert SERVICES.charges == {"7": 50}
    assert SERVICES.sheets == {"7": ["a@1200", "b@1200"]}
    assert set(SERVICES.mails) == {
        ("ada@example.org", "order 7: receipt-7"),
        ("archive@example.org", "order 7: 2 files"),
    }


def test_a_reminder_comes_after_three_days_to_who_has_not_paid(duetime: Duetime) -> None:
    """A declined charge is not retried; the prints are still made, and a reminder is sent after three days."""
    duetime.client.tasks.create("order.place", payload={**ORDER, "amount": 5000})
    duetime.advance(days=2, hours=23)
    duetime.assert_ran("order.charge", times=1)
    duetime.assert_ran("order.confirm", times=0)
    assert SERVICES.mails == [("archive@example.org", "order 7: 2 files")]
    duetime.advance(hours=2)
    assert SERVICES.mails[1:] == [("ada@example.org", "please pay order 7")]


def test_who_has_paid_is_not_reminded(duetime: Duetime) -> None:
    """The reminder task for a paid order succeeds without sending an e-mail."""
    duetime.client.tasks.create("order.place", payload=ORDER)
    duetime.advance(days=3, minutes=1)
    duetime.assert_ran("order.remind", times=1)
    assert not [text for _, text in SERVICES.mails if "pay" in text]


def test_a_task_that_starts_tasks_starts_each_once(duetime: Duetime) -> None:
    """If the worker is lost after it has created tasks, the next attempt does not create them again."""
    duetime.faults.crash_before_finish(type="order.place")
    parent = duetime.client.tasks.create("order.place", payload=ORDER)
    duetime.run_until_idle()
    assert duetime.client.tasks.get(parent.id).attempt == 2
    children = duetime.client.tasks.list(parent_task_id=parent.id, order="asc")
    assert [child.type for child in children] == ["topology", "order.remind"]


def test_a_busy_bank_is_asked_again_in_a_minute(duetime: Duetime) -> None:
    """If the bank is busy twice, the charge is retried after a minute each time, as with `self.retry(countdown=60)`."""
    SERVICES.failures["charge"] = 2
    duetime.client.tasks.create("order.charge", payload={"order": "7", "amount": 50})
    duetime.run_until_idle()
    first, second, third = (execution.at for execution in duetime.executions)
    assert second - first >= timedelta(minutes=1)
    assert third - second >= timedelta(minutes=1)
    assert SERVICES.charges == {"7": 50}


def test_files_are_uploaded_once_when_the_mail_is_sent_again(duetime: Duetime) -> None:
    """If sending the e-mail fails, files are still uploaded only once; Celery's task uploaded them in every retry."""
    SERVICES.failures["mail"] = 2
    duetime.client.tasks.create("order.publish", payload={"order": "7", "files": ["a"]})
    duetime.run_until_idle()
    assert (len(SERVICES.mails), SERVICES.uploads) == (1, [("7", 1)])


def test_a_partner_that_does_not_answer_is_told_of(duetime: Duetime) -> None:
    """A partner that never responds is called three times and causes one alert; other partners are not affected."""
    duetime.http.respond(ALERTS)
    SERVICES.failures["south"] = 9
    duetime.client.tasks.create("partner.sync-all")
    duetime.run_until_idle()
    assert set(SERVICES.stock) == {"north", "west"}
    assert SERVICES.failures["south"] == 6
    assert [request.json["type"] for request in duetime.http.requests] == ["task.failed"]


def test_the_schedules_run_as_beat_ran_them(duetime: Duetime) -> None:
    """During a night in Berlin, the report runs once, at half past one, and partners are called every ten minutes."""
    duetime.at("2026-01-05T22:00+01:00")
    for line in SCHEDULES.read_text(encoding="utf-8").splitlines():
        duetime.client.schedules.create(**json.loads(line))
    duetime.advance(hours=4)
    duetime.assert_ran("partner.sync-all", times=25)
    duetime.assert_ran("report.nightly", times=1)
    (report,) = (each for each in duetime.executions if each.type == "report.nightly")
    assert report.due_at == datetime.fromisoformat("2026-01-06T01:30+01:00")
    assert SERVICES.mails == [("boss@example.org", "sales: 0 orders, top 10")]


def test_a_print_is_made_again_only_if_its_worker_is_lost(duetime: Duetime) -> None:
    """A lost worker's task runs again, but an exception fails the task, as with `task_acks_late` in Celery."""
    duetime.faults.crash_before_finish(type="photo.resize")
    lost = duetime.client.tasks.create("photo.resize", payload={"photo": "a"})
    duetime.run_until_idle()
    duetime.faults.clear()
    wrong = duetime.client.tasks.create("photo.resize", payload={})
    duetime.run_until_idle()
    ended = [duetime.client.tasks.get(task.id) for task in (lost, wrong)]
    assert [(task.state, task.attempt) for task in ended] == [("succeeded", 2), ("failed", 1)]
