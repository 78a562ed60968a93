"""Makes the requests from which the OpenAPI document's examples are recorded; the first request of a kind is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.times import to_iso
from duetime.environment_variables import Variable
from duetime.handlers import Accepted
from duetime_testing.simulation.table_stream import SimulatedTableStream
from tests.scenarios.scenario import HOUR, MINUTE, PHASED, PLAIN, SECOND, UNDONE
from tests.simulation.account import PULLED
from tests.simulation.endpoints import BATCH_URL, CALLBACK_URL, NOTICE_URL, URL

if TYPE_CHECKING:
    from typing import Any

    from tests.openapi.recording import Recorder

DAY = 24 * HOUR
ICALENDAR = b"""BEGIN:VCALENDAR\r
VERSION:2.0\r
PRODID:-//example.org//holidays//EN\r
BEGIN:VEVENT\r
UID:1@example.org\r
DTSTAMP:20261121T000000Z\r
DTSTART;VALUE=DATE:20261225\r
SUMMARY:Christmas Day\r
END:VEVENT\r
END:VCALENDAR\r
"""


def ask_for_everything(account: Recorder) -> None:
    """Call every operation so that it succeeds in every possible way, and fails in the usual ways."""
    _create(account)
    _read(account)
    _control(account)
    _report(account)
    _actions_by_filter(account)
    _dead_letters(account)
    _locks_and_leases(account)
    _groups(account)
    _rates(account)
    _switches(account)
    _api_keys(account)
    _links(account)
    _uploads(account)
    _types(account)
    _schedules(account)
    _topologies(account)
    _service(account)
    _refusals(account)
    _quotas(account)
    _intake_rules(account)


def _create(account: Recorder) -> None:
    tasks = "/v1/tasks"
    key = {"Idempotency-Key": "report-2026-11-21"}
    body = {
        "type": PLAIN,
        "payload": {"month": "2026-11"},
        "due_at": to_iso(account.now + HOUR),
        "name": "Monthly report",
        "tags": {"team": "dba"},
        "retry": {"max_attempts": 3},
    }
    account.ask("POST", tasks, body, headers=key)
    account.ask("POST", tasks, {**body, "name": "Another"}, headers=key)
    account.ask("POST", tasks, {"type": PLAIN, "delay_seconds": 60}, query="wait_seconds=1")
    batch = [
        {"type": PLAIN, "tags": {"team": "dba"}},
        {"type": PLAIN, "callback_url": "https://me:secret@example.org/"},
    ]
    account.ask("POST", f"{tasks}/batch", {"tasks": batch})
    http = {"kind": "http", "url": URL, "phases": ["prepare"], "queries": ["progress"]}
    account.create(kind="transfer", target=http, payload={"rows": 17}, callback_url=CALLBACK_URL)
    together = {"kind": "http", "url": BATCH_URL, "batch": {"max_size": 100, "max_wait_seconds": 5}}
    account.ask("POST", f"{tasks}/batch", {"tasks": 2 * [{"type": PLAIN, "target": together, "payload": {"rows": 17}}]})
    notify_on = {"to": NOTICE_URL, "failed": True, "late_seconds": 300, "running_seconds": 600}
    account.ask("POST", tasks, {"type": PLAIN, "delay_seconds": 60, "notify_on": notify_on})
    unique = {"type": PLAIN, "delay_seconds": 60, "unique": {"key": "customer-17"}}
    account.ask("POST", tasks, unique)
    account.ask("POST", tasks, unique)
    account.ask("POST", tasks, {**unique, "unique": {"key": "customer-17", "on_conflict": "refuse"}})
    account.run(MINUTE)


def _read(account: Recorder) -> None:
    page = account.ask("GET", "/v1/tasks", query="limit=2")
    ended = [task for task in page.body["tasks"] if task["state"] == "succeeded"] or page.body["tasks"]
    account.ask("GET", f"/v1/tasks/{ended[0]['id']}")
    done = account.create(kind=UNDONE, payload={"rows": 17})
    account.run(MINUTE)
    account.ask("GET", f"/v1/tasks/{done}/attempts")
    account.do(done, "rollback")


def _control(account: Recorder) -> None:
    task = account.create(HOUR)
    account.ask("PATCH", f"/v1/tasks/{task}", {"priority": "high", "tags": {"team": "dba"}})
    account.ask("PATCH", f"/v1/tasks/{task}", {"priority": "low"}, headers={"If-Match": '"1"'})
    account.do(task, "pause", {"reason": "the warehouse is closed"})
    account.do(task, "resume")
    account.do(task, "run")
    account.run(MINUTE)
    account.ask("GET", f"/v1/tasks/{task}/events")
    account.ask("PATCH", f"/v1/tasks/{task}", {"priority": "low"})
    account.cancel(account.create(HOUR))
    account.ask("DELETE", f"/v1/tasks/{account.create(HOUR)}")
    account.fail(attempts=1)
    failed = account.create(retry={"max_attempts": 1})
    account.run(MINUTE)
    account.do(failed, "retry")
    account.run(MINUTE)
    account.last(30)
    for action in ("pause", "cancel"):
        running = account.create(kind=PHASED)
        account.run(5 * SECOND)
        account.do(running, "pause") if action == "pause" else account.cancel(running, force=True)
    account.run(2 * MINUTE)
    account.target = lambda _phase, _context: "done"


def _report(account: Recorder) -> None:
    """Accept the work as an endpoint, and report its progress."""
    account.target = lambda phase, _context: Accepted() if phase == "run" else "done"
    target = {"kind": "http", "url": URL, "queries": ["progress"]}
    task = account.create(kind="transfer", target=target, notify_within_seconds=600)
    account.run(10 * SECOND)
    fence = account.record(task).fence
    account.do(task, "heartbeat", {"fence": fence})
    account.do(task, "progress", {"fence": fence, "percent": 40, "message": "17 of 42 tables"})
    account.do(task, "query", {"action": "progress"})
    account.do(task, "query", {"action": "summary"})
    account.do(task, "notify", {"fence": fence + 1, "outcome": "succeeded"})
    account.do(task, "notify", {"fence": fence, "outcome": "succeeded", "result": {"rows": 17}})
    account.do(task, "notify", {"fence": fence, "outcome": "failed", "error": {"type": "NoSpace"}})
    account.target = lambda _phase, _context: "done"
    account.run(MINUTE)


def _actions_by_filter(account: Recorder) -> None:
    for _ in range(4):
        account.create(DAY, tags={"batch": "7"})
    wanted = {"filter": {"type": PLAIN, "tags": {"batch": "7"}}}
    for verb, more in (("update", {"update": {"priority": "low"}}), ("cancel", {})):
        account.ask("POST", f"/v1/tasks/{verb}", {**wanted, **more, "dry_run": True})
        account.ask("POST", f"/v1/tasks/{verb}", {**wanted, **more, "per_second": 0.1})
    operations = account.ask("GET", "/v1/bulk-operations").body["operations"]
    account.ask("GET", f"/v1/bulk-operations/{operations[0]['id']}")
    account.ask("POST", f"/v1/bulk-operations/{operations[0]['id']}/cancel")
    account.run(5 * MINUTE)
    account.ask("POST", f"/v1/bulk-operations/{operations[-1]['id']}/cancel")


def _dead_letters(account: Recorder) -> None:
    account.fail(attempts=1)
    for _ in range(3):
        account.create(retry={"max_attempts": 1}, tags={"team": "dba"})
    account.run(MINUTE)
    wanted = {"filter": {"tags": {"team": "dba"}}}
    account.ask("POST", "/v1/tasks/retry", {**wanted, "dry_run": True})
    account.ask("POST", "/v1/tasks/retry", {**wanted, "per_second": 0.1})
    account.run(MINUTE)
    unwanted = {"filter": {"state": "failed", "tags": {"team": "dba"}}}
    account.ask("POST", "/v1/tasks/delete", {**unwanted, "dry_run": True})
    account.ask("POST", "/v1/tasks/delete", {**unwanted, "per_second": 0.1})
    account.target = lambda _phase, _context: "done"


def _groups(account: Recorder) -> None:
    group, path = {"id": "import-17"}, "/v1/groups/import-17"

    def fail(_phase: str, _context: object) -> None:
        raise ValueError("no such file")

    account.target = fail
    for _ in range(3):
        account.create(group=group, retry={"max_attempts": 1})
    account.run(10 * SECOND)
    account.target = lambda _phase, _context: "done"
    for _ in range(3):
        account.create(HOUR, group=group)
    account.ask("GET", "/v1/groups")
    account.ask("GET", path)
    account.ask("PUT", path, {"on_complete": {"task": {"type": PLAIN}, "rule": "all_success"}})
    account.ask("PUT", path, {})
    account.ask("POST", "/v1/tasks", {"type": PLAIN, "group": group})
    account.ask("POST", f"{path}/retry", {"per_second": 0.1})
    account.ask("POST", f"{path}/cancel", {"per_second": 0.1})
    account.run(10 * SECOND)
    account.ask("POST", f"{path}/retry")
    account.ask("POST", f"{path}/cancel", {"force": True})
    account.ask("GET", "/v1/groups/unknown")
    account.ask("PUT", path, {"on_complete": {"task": {"type": "other"}}})


def _locks_and_leases(account: Recorder) -> None:
    made = [account.create(kind=PULLED, lock={"key": "db-17"}, payload={"frame": n}) for n in range(2)]
    made += [account.create(kind=PULLED, payload={"frame": n}, retry={"max_attempts": 1}) for n in range(2, 8)]
    account.run(10 * SECOND)
    wanted = {"types": [PULLED], "max_tasks": 10, "wait_seconds": 0, "lease_seconds": 60, "worker": "vm-9219"}
    leases: list[dict[str, Any]] = []
    while len(leases) < len(made) - 1:
        found = account.ask("POST", "/v1/leases", wanted).body["leases"]
        leases += found
        assert account.now < 1e15
        account.run(SECOND)
    account.ask("GET", "/v1/locks")
    account.ask("GET", "/v1/locks/db-17")
    waiting = next(task for task in made if account.record(task).waiting_for)
    account.ask("GET", f"/v1/tasks/{waiting}/explain")
    account.ask("GET", "/v1/locks/db-18")
    account.create(delay_seconds=3600, locks=[{"key": "db-18"}, {"key": "gpu", "mode": "shared"}])
    # The lock is released by force below, so the lease whose task holds the lock comes last.
    leases.sort(key=lambda lease: lease["task"]["lock"] is not None)
    ids = [lease["id"] for lease in leases]
    account.ask("DELETE", "/v1/locks/db-17")
    # With the lease of another owner's task, a worker may only create tasks.
    foreign = {"X-Duetime-Lease": ids[1], "X-Duetime-Owner": "worker"}
    account.ask("GET", "/v1/tasks", headers=foreign)
    account.ask("POST", f"/v1/leases/{ids[1]}/heartbeat", {"percent": 40, "message": "frame 17"})
    account.ask("PUT", f"/v1/leases/{ids[1]}/steps/fetch", {"result": {"bytes": 17}, "duration_ms": 250})
    account.ask("GET", f"/v1/leases/{ids[1]}/steps")
    account.ask("GET", f"/v1/tasks/{next(each['task']['id'] for each in leases if each['id'] == ids[1])}/steps")
    account.ask("POST", f"/v1/leases/{ids[1]}/complete", {"result": {"frames": 42}})
    account.ask("POST", f"/v1/leases/{ids[2]}/fail", {"error": {"type": "NoSpace", "message": "disk full"}})
    account.ask("POST", f"/v1/leases/{ids[3]}/release")
    account.ask("POST", f"/v1/tasks/{leases[5]['task']['id']}/cancel", {"force": True})
    account.ask("POST", f"/v1/leases/{ids[5]}/cancel")
    account.ask("POST", f"/v1/tasks/{leases[4]['task']['id']}/pause")
    account.ask("POST", f"/v1/leases/{ids[4]}/pause", {"checkpoint": {"frame": 17}})
    account.ask("POST", "/v1/leases", {"types": ["unheard-of"], "worker": "vm-9219"})
    account.ask("POST", f"/v1/leases/{ids[3][:-4]}AAAA/release")


def _rates(account: Recorder) -> None:
    rate = {"key": "crm", "limit": 2, "per_seconds": 10}
    for _ in range(4):
        account.create(rate=rate)
    account.create(delay=HOUR, unique={"key": "customer-17"})
    account.run(5 * SECOND)
    account.ask("POST", "/v1/tasks/preview", {"type": PLAIN, "rate": rate})
    account.ask("GET", "/v1/rates")
    account.ask("GET", "/v1/rates/crm")
    account.ask("PUT", "/v1/rates/crm", {"limit": 1, "per_seconds": 60, "reason": "the CRM is slow"})
    account.ask("DELETE", "/v1/rates/crm")
    for action in ("pause", "resume", "reset"):
        account.ask("POST", f"/v1/rates/crm/{action}", {"reason": "the CRM is down"})
    account.ask("GET", "/v1/unique-keys")
    account.ask("GET", "/v1/unique-keys/customer-17")
    for _ in range(3):
        account.create(delay=HOUR, order={"key": "customer-17"})
    account.ask("GET", "/v1/ordered-keys")
    account.ask("GET", "/v1/ordered-keys/customer-17")
    for path in ("/v1/rates/unknown", "/v1/unique-keys/unknown", "/v1/ordered-keys/unknown"):
        account.ask("GET", path)
    account.ask("PUT", "/v1/rates/crm", {"limit": 0})


def _switches(account: Recorder) -> None:
    reports = "/v1/switches/type/report"
    account.ask("PUT", reports, {"stopped": True, "reason": "disk full"})
    account.ask("GET", "/v1/switches")
    account.ask("GET", reports)
    account.ask("DELETE", reports)
    account.ask("DELETE", reports)


def _api_keys(account: Recorder) -> None:
    body = {"name": "billing worker", "roles": ["writer"], "owner": "billing", "expires_at": to_iso(account.now + DAY)}
    key = account.ask("POST", "/v1/keys", body).body["id"]
    account.ask("GET", "/v1/keys")
    account.ask("DELETE", f"/v1/keys/{key}")
    account.ask("DELETE", "/v1/keys/00000000000000000000")


def _quotas(account: Recorder) -> None:
    account.environ[Variable.QUOTAS] = '{"open_tasks":100000}'
    # Only newly started processes have the setting.
    account.machines.clear()
    reports = "/v1/quotas/123456789012:role/Reports"
    account.ask("PUT", reports, {"creates_per_second": 20, "open_tasks": 10_000, "reason": "a loop in production"})
    account.ask("GET", "/v1/quotas")
    account.ask("GET", reports)
    account.ask("DELETE", reports)
    account.ask("DELETE", reports)


def _uploads(account: Recorder) -> None:
    account.ask("POST", "/v1/uploads", {"id": "scan-17", "size": 3_000_000, "content_type": "image/png"})


def _links(account: Recorder) -> None:
    release = {"type": "release", "name": "release 17", "target": {"kind": "approval", "timeout_seconds": 86400}}
    task = account.ask("POST", "/v1/tasks", release).body["id"]
    links = f"/v1/tasks/{task}/links"
    wanted = {
        "actions": ["approve", "reject"],
        "expires_seconds": 86400,
        "message": "Publish release 17?",
        "takes_payload": True,
    }
    link = account.ask("POST", links, wanted).body
    other = account.ask("POST", links, {"actions": ["approve"]}).body
    account.ask("GET", links)
    path = link["url"].removeprefix("https://api.example.org")
    account.ask("GET", path)
    account.ask("POST", path, {"action": "approve", "payload": {"version": "2.1"}, "reason": "tested"})
    account.ask("POST", path, {"action": "approve"})
    account.ask("POST", other["url"].removeprefix("https://api.example.org"))
    account.ask("DELETE", f"{links}/{other['id']}")
    account.ask("GET", "/v1/links/dtl_0")
    task = account.ask("POST", "/v1/tasks", release).body["id"]
    link = account.ask("POST", f"/v1/tasks/{task}/links", wanted).body
    form = {"content-type": "application/x-www-form-urlencoded"}
    path = link["url"].removeprefix("https://api.example.org")
    account.ask("POST", path, b"action=reject&reason=it+is+Friday", headers=form)


def _intake_rules(account: Recorder) -> None:
    rule = "/v1/intake-rules/order-placed"
    body = {
        "pattern": {"source": ["com.example.orders"], "detail-type": ["OrderPlaced"]},
        "create": {
            "task": {"type": "mail.send", "delay_seconds": 3_600},
            "fields": {"payload": "detail.order", "tags.order": "detail.order.id"},
        },
        "description": "asks for a review an hour after the order",
    }
    account.ask("PUT", rule, body)
    signal = {"name": "order.paid", "fields": {"key": "detail.order.id", "payload": "detail"}}
    paid = {"source": ["com.example.orders"], "detail-type": ["OrderPaid"]}
    account.ask("PUT", "/v1/intake-rules/order-paid", {"pattern": paid, "signal": signal})
    account.ask("GET", "/v1/intake-rules")
    account.ask("GET", rule)
    account.ask("DELETE", rule)
    account.ask("DELETE", rule)


def _types(account: Recorder) -> None:
    resize = "/v1/types/resize"
    account.ask("PUT", resize, {"timeout_seconds": 300, "retry": {"max_attempts": 3}, "lock": {"key": "gpu"}})
    account.ask("GET", "/v1/types")
    account.ask("GET", resize)
    account.ask("DELETE", resize)
    account.ask("DELETE", resize)


def _schedules(account: Recorder) -> None:
    schedules, calendars = "/v1/schedules", "/v1/calendars"
    holidays = {"timezone": "Europe/London", "dates": {"2026-12-25": "Christmas Day"}, "weekdays": ["sun"]}
    account.ask("PUT", f"{calendars}/uk-holidays", holidays)
    account.ask("PUT", f"{calendars}/uk-holidays", holidays)
    account.ask("PUT", f"{calendars}/de-holidays", ICALENDAR, headers={"content-type": "text/calendar"})
    account.ask("PUT", f"{calendars}/uk-holidays", holidays, headers={"if-none-match": "*"})
    account.ask("GET", calendars)
    account.ask("GET", f"{calendars}/uk-holidays")
    account.ask("GET", f"{calendars}/fr-holidays")
    account.ask("PUT", f"{calendars}/uk-holidays", holidays, headers={"if-none-match": "*"})
    timing = {"cron": "30 1 * * *", "timezone": "Europe/London", "calendars": ["uk-holidays"]}
    account.ask("POST", f"{schedules}/preview", {**timing, "count": 3})
    made = {"name": "nightly", **timing, "catch_up_seconds": 3600, "task": {"type": PLAIN}}
    account.ask("POST", schedules, made)
    account.ask("POST", schedules, made)
    nightly = f"{schedules}/nightly"
    account.ask("GET", schedules)
    account.ask("GET", nightly)
    account.ask("GET", f"{schedules}/weekly")
    account.ask("GET", "/v1/forecast")
    account.ask("GET", "/v1/signing-secrets")
    account.ask("GET", "/v1/signing-keys", query="owner=123456789012:role/Billing")
    purge = account.ask("POST", "/v1/purges", {"filter": {"tags": {"customer": "7"}}, "reason": "request 17"}).body
    account.ask("GET", f"/v1/purges/{purge['id']}")
    account.ask("GET", f"{nightly}/occurrences", query="limit=3")
    account.ask("GET", f"{nightly}/explain", query="at=2026-12-25T01:30:00Z")
    account.ask("PATCH", nightly, {"cron": "45 1 * * *"})
    account.ask("POST", f"{nightly}/pause", {"reason": "the printer is broken"})
    account.ask("POST", f"{nightly}/resume", {"reason": "the printer is repaired"})
    by_tag = {"filter": {"tags": {"team": "dba"}}, "reason": "a release"}
    account.ask("POST", f"{schedules}/pause", by_tag)
    account.ask("POST", f"{schedules}/resume", by_tag)
    tomorrow = account.ask("GET", nightly).body["upcoming"][0]["scheduled_at"]
    account.ask("POST", f"{nightly}/occurrences/update", {"scheduled_at": tomorrow, "action": "skip"})
    account.ask("GET", f"{nightly}/events")
    account.ask("POST", f"{nightly}/run")
    account.ask("GET", f"{nightly}/runs", query="limit=3")
    period = {"scheduled_after": to_iso(account.now - 3 * DAY), "scheduled_before": to_iso(account.now - DAY)}
    backfill = account.ask("POST", f"{nightly}/backfills", {**period, "per_minute": 1, "overlap": "buffer_all"}).body[
        "id"
    ]
    account.ask("GET", f"{nightly}/backfills")
    account.ask("GET", f"{nightly}/backfills/{backfill}")
    account.ask("DELETE", f"{nightly}/backfills/{backfill}")
    account.ask("DELETE", f"{nightly}/backfills/unheard-of")
    account.ask("DELETE", f"{calendars}/uk-holidays")
    account.ask("DELETE", nightly)
    account.ask("DELETE", f"{calendars}/uk-holidays")


def _topologies(account: Recorder) -> None:
    topologies = "/v1/topologies"
    nodes: dict[str, dict[str, object]] = {
        "extract": {"type": PLAIN},
        "load": {"type": PLAIN, "depends_on": ["extract"], "when": "parents.extract.result == 'done'"},
        "each": {"type": PLAIN, "depends_on": ["extract"], "map": {"over": "[`1`, `2`]", "max_parallel": 1}},
    }
    account.ask("POST", topologies, {"nodes": nodes, "name": "Import"})
    account.target = lambda _phase, _context: "done"
    account.fail(attempts=1)
    failing = {key: {**node, "retry": {"max_attempts": 1}} for key, node in nodes.items()}
    first = account.ask("POST", topologies, {"nodes": failing}).body["id"]
    account.run(5 * MINUTE)
    account.ask("GET", f"{topologies}/{first}")
    account.ask("GET", f"{topologies}/{first}/nodes", query="limit=2")
    account.target = lambda _phase, _context: "done"
    account.ask("GET", topologies)
    account.ask("POST", f"{topologies}/{first}/retry")
    account.run(5 * MINUTE)
    account.ask("POST", f"{topologies}/{first}/retry", {"nodes": ["load"], "reason": "other rates"})
    account.run(5 * MINUTE)
    account.ask("POST", f"{topologies}/{first}/cancel")
    only = {"nodes": nodes, "delay_seconds": 3600, "unique": {"key": "import"}}
    waiting = account.ask("POST", topologies, only).body["id"]
    release = {"type": "release", "target": {"kind": "approval", "timeout_seconds": 86400, "on_timeout": "reject"}}
    decided = account.ask("POST", "/v1/tasks", release).body["id"]
    account.run(MINUTE)
    account.ask(
        "POST",
        f"/v1/tasks/{decided}/signal",
        {"approve": True, "payload": {"limit": 500}, "reason": "checked by finance"},
    )
    payment = {"type": "payment", "target": {"kind": "wait_for_event", "event": "order.paid", "key": "order-4711"}}
    account.ask("POST", "/v1/tasks", payment)
    account.run(MINUTE)
    account.ask("POST", "/v1/signals", {"name": "order.paid", "key": "order-4711", "payload": {"amount": 17}})
    account.ask("POST", topologies, only)
    for verb in ("pause", "resume", "cancel"):
        account.ask("POST", f"{topologies}/{waiting}/{verb}")
    account.last(50)
    running = account.ask("POST", topologies, {"nodes": nodes}).body["id"]
    account.run(30 * SECOND)
    for verb in ("pause", "resume", "cancel"):
        account.ask("POST", f"{topologies}/{running}/{verb}")
    account.target = lambda _phase, _context: "done"
    account.run(5 * MINUTE)
    account.ask("DELETE", f"{topologies}/{waiting}")
    _definitions(account)


def _definitions(account: Recorder) -> None:
    definitions, nightly = "/v1/topologies/definitions", "/v1/topologies/definitions/nightly"
    import_of_a_day = {
        "description": "Imports one day",
        "parameters": {"region": {"type": "string", "enum": ["eu", "us"], "default": "eu"}},
        "nodes": {
            "extract": {"type": PLAIN, "payload": {"region": "<duetime.parameters.region>"}},
            "load": {"type": PLAIN, "depends_on": ["extract"]},
        },
    }
    account.ask("PUT", nightly, import_of_a_day)
    account.ask("PUT", nightly, {**import_of_a_day, "timeout_seconds": 3600})
    account.ask("PUT", nightly, import_of_a_day, headers={"if-none-match": "*"})
    account.ask("PUT", nightly, import_of_a_day, headers={"if-match": '"1"'})
    account.ask("GET", definitions)
    account.ask("GET", nightly)
    account.ask("GET", f"{definitions}/weekly")
    account.ask("GET", f"{nightly}/versions")
    account.ask("GET", f"{nightly}/diff", query="from=1&to=2")
    run = {"parameters": {"region": "us"}, "delay_seconds": 3600, "unique": {"key": "import-us"}}
    account.ask("POST", f"{nightly}/runs", run)
    account.ask("POST", f"{nightly}/runs", run)
    target = {"kind": "topology", "definition": {"name": "nightly", "parameters": {"region": "us"}}}
    task = {"type": "import", "target": target}
    account.ask("POST", "/v1/schedules", {"name": "import", "cron": "0 2 * * *", "task": task})
    account.ask("DELETE", nightly)
    account.ask("DELETE", "/v1/schedules/import")
    account.ask("DELETE", nightly)


def _service(account: Recorder) -> None:
    account.ask("GET", "/v1")
    account.ask("GET", "/v1/health")
    stream = SimulatedTableStream(account)
    for priority in ("high", "normal", "normal"):
        account.create(priority=priority, delay_seconds=3 if priority == "normal" else 3600)
    account.run_until(lambda: stream.is_read)
    account.run(MINUTE)
    account.ask("GET", "/v1/summary")
    account.ask("GET", "/v1/summary/owners")
    account.ask("GET", "/v1/settings")
    account.ask("GET", "/v1/dispatch")
    account.ask("POST", "/v1/watch-tickets")


def _refusals(account: Recorder) -> None:
    account.ask("POST", "/v1/tasks", {"type": PLAIN, "delay": "5m"})
    account.ask("POST", "/v1/tasks", b"{'type': 'report'}")
    account.ask("GET", "/v1/tasks", query="limit=1000")
    account.ask("GET", "/v1/tasks/01M7XZ8CGJ0013P2ZBN3YDT3DX")
    account.ask("GET", "/v1/nothing")
    account.ask("POST", "/v1/tasks", {"type": PLAIN}, headers={"content-encoding": "br"})
    account.ask("PUT", "/v1/tasks")
    account.ask("GET", "/v1/bulk-operations/01M7XZ8CGJ0013P2ZBN3YDT3DX")
    account.ask("POST", "/v1/tasks", {"type": PLAIN}, headers={"content-type": "text/plain"})
    account.ask("POST", "/v1/tasks", {"type": PLAIN}, headers={"content-encoding": "br"})
