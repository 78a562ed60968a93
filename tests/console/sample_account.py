"""Creates an account with content on each of the console's pages, for screenshots and development."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.handlers import REGISTRY, registered_as
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.simulation.works import STAGE

if TYPE_CHECKING:
    from duetime.handlers import Context
    from tests.console.world import World
    from tests.scenarios.live import Live

REPORT, MAIL, CHARGE, IMPORT = "report.render", "mail.send", "billing.charge", "ledger.import"
_TOPOLOGY = {
    "name": "month close",
    "nodes": {
        "extract-eu": {"type": IMPORT, "payload": {"work_ms": 4000}},
        "extract-us": {"type": IMPORT, "payload": {"work_ms": 9000}},
        "extract-asia": {"type": IMPORT, "payload": {"work_ms": 2500}},
        "merge": {"type": IMPORT, "depends_on": ["extract-eu", "extract-us", "extract-asia"]},
        "invoice": {"type": CHARGE, "depends_on": ["merge"], "payload": {"work_ms": 3000}},
        "report": {"type": REPORT, "depends_on": ["merge"], "payload": {"work_ms": 400_000}, "timeout_seconds": 800},
        "send": {"type": MAIL, "depends_on": ["invoice", "report"]},
    },
}
_RETRIES = {"max_attempts": 3, "initial_seconds": 5, "multiplier": 2}


class BankUnreachable(Exception):
    """The payment provider did not respond."""


class AddressRejected(Exception):
    """The mail server rejects the recipient."""


def work(context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
    """Process the payload."""
    return STAGE[-1].act("run", context, payload)


def _act(live: Live, _phase: str, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
    wanted = payload if isinstance(payload, dict) else {}
    live.take(int(wanted.get("work_ms", 400)))
    if context.attempt <= int(wanted.get("failures", 0)):
        if "invoice" in wanted:
            raise BankUnreachable("bank.example.org did not answer within 10 s")
        raise AddressRejected("550 5.1.1 no such user")
    return {"rows": 1204, "file": "s3://reports/2026-11.pdf"}


def fill(world: World) -> dict[str, str]:
    """Fill an account, let it run for a while, and return the ids of interesting tasks."""
    # Handlers are registered here and not at import, because other tests have handlers for the same types.
    REGISTRY.update((kind, registered_as(kind, work)) for kind in (REPORT, MAIL, CHARGE, IMPORT))
    world.do(lambda live: setattr(live, "act", lambda *told: _act(live, *told)))
    _calendars(world)
    _schedules(world)
    _definitions(world)
    for number in range(28):
        world.create(
            type=REPORT, name=f"month-{number % 12 + 1:02d}", tags={"team": "finance"}, delay_seconds=number * 7
        )
        world.create(type=MAIL, tags={"team": "growth"}, delay_seconds=number * 9, payload={"to": f"user-{number}"})
    retried = world.create(
        type=CHARGE, name="invoice-1042", tags={"team": "billing"}, retry=_RETRIES, delay_seconds=240,
        payload={"invoice": 1042, "amount": "129.00", "failures": 2, "work_ms": 2300},
    )  # fmt: skip
    for number in range(6):
        world.create(
            type=CHARGE, name=f"invoice-{900 + number}", tags={"team": "billing"}, delay_seconds=30 + number * 20,
            retry={"max_attempts": 2, "initial_seconds": 1}, payload={"invoice": 900 + number, "failures": 9},
        )  # fmt: skip
    for number in range(3):
        world.create(
            type=MAIL, name=f"welcome-{number}", delay_seconds=40 + number * 31, retry={"max_attempts": 1},
            payload={"to": "nobody", "failures": 9},
        )  # fmt: skip
    topology = world.ask("POST", "/v1/topologies", _TOPOLOGY)["id"]
    world.run(6 * MINUTE)
    first = world.create(
        type=IMPORT,
        name="ledger 2026-10",
        lock={"key": "ledger"},
        payload={"work_ms": 900_000},
        order={"key": "ledger"},
    )
    world.run(5 * SECOND)
    waiting = world.create(type=IMPORT, name="ledger 2026-11", lock={"key": "ledger"}, payload={"month": "2026-11"})
    world.create(type=IMPORT, name="ledger 2026-12", lock={"key": "ledger"})
    for hours in (1, 1, 3, 7, 12, 20):
        world.create(
            type=REPORT, name="quarter", tags={"team": "finance"}, delay_seconds=hours * HOUR // SECOND,
            order={"key": f"customer-{hours}"},
        )  # fmt: skip
    world.ask("PUT", f"/v1/switches/type/{MAIL}", {"max_concurrent": 20, "reason": "the provider allows 20 at once"})
    world.run(20 * SECOND)
    return {"topology": topology, "retried": retried, "running": first, "waiting": waiting}


def _definitions(world: World) -> None:
    """Create a definition with two versions and no runs."""
    load = {"type": IMPORT, "payload": {"from": "s3://<duetime.parameters.region>/in"}}
    report = {"type": REPORT, "depends_on": ["load"], "when": "parameters.full"}
    parameters = {
        "region": {"type": "string", "enum": ["eu", "us"], "default": "eu", "description": "Whose data"},
        "full": {"type": "boolean", "default": True},
    }
    body = {"description": "Imports and reports", "parameters": parameters, "nodes": {"load": load, "report": report}}
    world.ask("PUT", "/v1/topologies/definitions/nightly", body)
    world.ask("PUT", "/v1/topologies/definitions/nightly", {**body, "timeout_seconds": 600, "outputs": ["report"]})


def _calendars(world: World) -> None:
    dates = {
        "2026-12-25": "Christmas Day",
        "2026-12-28": "Boxing Day (substitute)",
        "2027-01-01": "New Year's Day",
        "2027-03-26": "Good Friday",
        "2027-03-29": "Easter Monday",
        "2027-05-03": "Early May bank holiday",
    }
    move = {"start": "2027-02-08T18:00:00Z", "end": "2027-02-12T06:00:00Z", "reason": "data center move"}
    holidays = {"timezone": "Europe/London", "dates": dates, "weekdays": ["sat", "sun"], "spans": [move]}
    world.ask("PUT", "/v1/calendars/uk-holidays", holidays)
    trading = {"start": "09:30", "end": "16:00", "weekdays": ["mon", "tue", "wed", "thu", "fri"], "label": "open"}
    world.ask(
        "PUT",
        "/v1/calendars/trading-hours",
        {"mode": "includes", "timezone": "America/New_York", "windows": [trading]},
    )


def _schedules(world: World) -> None:
    report = {"type": REPORT, "payload": {"work_ms": 900}}
    schedules: list[dict[str, Any]] = [
        {"name": "each-minute", "cron": "* 0-2 * * *", "timezone": "Europe/London", "task": report},
        {"name": "nightly-close", "cron": "30 1 * * 1-5", "timezone": "Europe/London", "task": {"type": IMPORT},
         "calendars": ["uk-holidays"], "on_excluded": "move", "expect_success_by": "06:00"},
        {"name": "month-end", "interval": "R/2026-11-30T18:00:00/P1M", "timezone": "Europe/Berlin", "task": report},
        {"name": "second-friday", "cron": "0 9 * * fri#2", "timezone": "America/New_York", "task": report},
        {"name": "pulse", "rate": "90 minutes", "task": {"type": MAIL}},
        {"name": "poll-inbox", "permanent": {"gap_seconds": 45}, "task": {"type": MAIL}},
        {"name": "price-feed", "cron": "0,20,40 7-18 * * *", "timezone": "Europe/London", "task": report},
        {"name": "stock-check", "cron": "0 6-21 * * *", "timezone": "Europe/London", "task": {"type": IMPORT}},
        {"name": "day-close", "cron": "0 18 * * *", "timezone": "Europe/London", "task": report},
        {"name": "dawn-report", "cron": "30 1 * * *", "timezone": "Europe/London", "task": report},
    ]  # fmt: skip
    for schedule in schedules:
        world.ask("POST", "/v1/schedules", schedule)
    world.ask("POST", "/v1/schedules/second-friday/pause", {"reason": "the template is being redesigned"})
