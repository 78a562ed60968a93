"""Tasks are recounted if they are older than the function that reads changes, or if changes were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.environment_variables import Variable
from duetime.services import summary
from duetime_testing.simulation.table_stream import SimulatedTableStream
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario
from tests.scenarios.test_summary import CountedSimulation, counted_by_hand, create, told

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

DAY = 24 * HOUR
ANEW = {"recount": "anew"}


def recount(account: Scenario, times: int = 1, event: dict[str, str] | None = None) -> list[bool]:
    """Invoke the function on its schedule, every five minutes; return which invocations failed."""
    failed: list[bool] = []
    for _ in range(times):
        account.time.start_process(
            lambda: failed.append(
                account.wait_for(account.invoke("broadcast", event or {"recount": "continue"})).failed
            )
        )
        account.run(5 * MINUTE)
    return failed


def summary_of(account: Scenario, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - see `ask`
    """The API's response."""
    found: dict[str, Any] = account.ask("GET", "/v1/summary", **more).body
    return found


def agrees(account: Scenario) -> bool:
    """Whether the summary agrees with the table."""
    return told(summary_of(account)) == counted_by_hand(list(account.watching.tasks()))


def is_scan(call: Call) -> bool:
    """Whether a call reads the table page by page."""
    return call.operation == "scan"


def with_older_tasks(number: int = 5) -> Scenario:
    """An account with uncounted tasks, of which one is due in half an hour and the others have run."""
    account = Scenario()
    create(account, 1, delay_seconds=1800)
    create(account, number - 1)
    account.run(2 * MINUTE)
    return account


def test_the_summary_is_incomplete_until_older_tasks_are_counted() -> None:
    """Until older tasks are counted, the summary says it is incomplete; then it says since when changes are counted."""
    with with_older_tasks() as account:
        stream = SimulatedTableStream(account)
        create(account, 2, delay_seconds=7200)
        account.run(10 * MINUTE)
        before = summary_of(account)
        assert (before["is_complete"], before["recounted_at"]) == (False, None)
        assert recount(account) == [False]
        found = summary_of(account)
        assert agrees(account)
        assert found["is_complete"]
        assert found["counted_since"] < found["recounted_at"]
        create(account, 3)
        assert account.run_until(lambda: stream.is_read)
        account.run(MINUTE)
        assert agrees(account), "tasks that are created since are counted at once"


def test_older_tasks_that_change_are_counted_again_and_never_below_zero() -> None:
    """Changes to older tasks are not counted until the next recount, and counts never go below zero."""
    with with_older_tasks() as account:
        stream = SimulatedTableStream(account)
        create(account, 2, delay_seconds=600)
        account.run(10 * MINUTE)
        recount(account)
        account.run(20 * MINUTE)
        account.stand_still()
        account.run(7 * HOUR)
        recount(account)
        assert agrees(account), "the task that was to run in half an hour has run"
        account.run(40 * DAY)
        assert account.expire()
        assert account.run_until(lambda: stream.is_read)
        # The function no longer knows that changes were read, so it starts again and finds no changes.
        recount(account, 4)
        found = summary_of(account)
        assert (found["total"], found["states"], found["is_complete"]) == (0, {}, True)
        scans: list[Call] = []
        account.before_call = lambda call: scans.append(call) if is_scan(call) else None
        account.run(10 * HOUR)
        recount(account, 3)
        assert scans == [], "once no older task is left, the table is not read again"


def test_a_recount_of_the_table_replaces_lost_changes() -> None:
    """After the function was down for two days, a recount makes up for the lost changes."""
    with Scenario() as account:
        stream = SimulatedTableStream(account)
        create(account, 3)
        account.run(10 * MINUTE)
        recount(account)
        assert agrees(account)
        stream.dead_until = account.now + 2 * DAY
        lost = create(account, 4, delay_seconds=600)
        account.run(30 * MINUTE)
        for shard in stream.shards:
            shard.records[shard.position :] = []
        account.stand_still()
        account.run(2 * DAY)
        recount(account, 3)
        assert agrees(account)
        assert summary_of(account)["total"] == 3 + len(lost)
        assert summary_of(account)["is_complete"]


def test_changes_read_after_most_of_a_day_start_a_recount() -> None:
    """Changes that are read after most of a day start a recount, because others may have been lost."""
    with Scenario() as account:
        stream = SimulatedTableStream(account)
        create(account, 3)
        account.run(10 * MINUTE)
        stream.dead_until = account.now + 22 * HOUR
        create(account, 2)
        account.run(10 * MINUTE)
        account.stand_still()
        for _ in range(22):
            account.run(HOUR)
            recount(account)
        assert stream.is_read
        recount(account, 3)
        assert agrees(account)
        assert summary_of(account)["counted_since"] is not None


def test_the_counts_are_right_after_a_recount_dies_at_any_call() -> None:
    """If a recount dies at any call, the counts are correct in the end."""
    for fatal in range(1, 9):
        with with_older_tasks() as account:
            SimulatedTableStream(account)
            create(account, 2, delay_seconds=7200)
            account.run(10 * MINUTE)
            account.stand_still()
            calls: list[Call] = []

            def die(call: Call, calls: list[Call] = calls, fatal: int = fatal) -> None:
                if call.machine.function == "broadcast":
                    calls.append(call)
                    if len(calls) == fatal:
                        call.machine.die()

            account.before_call = die
            recount(account)
            account.before_call = None
            assert len(calls) >= fatal
            recount(account, 6)
            assert agrees(account), f"killed at call {fatal}"
            assert summary_of(account)["is_complete"]


def test_a_large_table_is_recounted_in_many_runs() -> None:
    """A large table is recounted in many runs; until the last run, the summary says it is incomplete."""
    with with_older_tasks(9) as account:
        account.environ[Variable.SUMMARY_RECOUNT_MEGABYTES] = "2"
        SimulatedTableStream(account)
        create(account, 1, delay_seconds=7200)
        account.run(10 * MINUTE)
        account.stand_still()
        account.dynamodb.page = 2
        scans: list[Call] = []
        account.before_call = lambda call: scans.append(call) if is_scan(call) else None
        runs = 0
        while not summary_of(account)["is_complete"] and runs < 50:
            recount(account)
            runs += 1
            assert len(scans) <= 2 * runs
        assert runs > 2
        account.dynamodb.page = 1_000_000
        assert agrees(account)


def test_a_new_table_is_counted_by_changes() -> None:
    """For a new table, a single page is read once, and all tasks are then counted by changes."""
    with Scenario() as account:
        scans: list[Call] = []
        account.before_call = lambda call: scans.append(call) if is_scan(call) else None
        SimulatedTableStream(account)
        create(account, 3)
        account.run(10 * MINUTE)
        recount(account, 3)
        assert agrees(account)
        found = summary_of(account)
        assert (found["is_complete"], found["counted_since"], found["recounted_at"]) == (True, None, None)
        assert len(scans) <= 2, "one scan for each stream shard that delivers the first changes"


def test_the_invocation_in_the_runbook_corrects_wrong_counts() -> None:
    """The invocation in the runbook corrects wrong counts within minutes."""
    with Scenario() as account:
        stream = SimulatedTableStream(account)
        create(account, 3)
        account.run(MINUTE)
        for shard in stream.shards:
            shard.position = len(shard.records)
        recount(account, event=ANEW)
        recount(account, 2)
        assert agrees(account)
        assert summary_of(account)["counted_since"] is not None


def test_the_counts_of_an_old_generation_expire_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of an old generation expire a day after the next generation began; current counts stay."""
    monkeypatch.setattr(summary, "SUMMARY_OWNERS_AT_ONCE", 1)

    def kept(account: Scenario) -> set[tuple[str, str, bool]]:
        """The owners and generations of all counts, and whether each count has a TTL."""
        found = [(item["p"]["S"], item["s"]["S"], schema.TTL in item) for item in account.table.every()]
        return {
            (partition.split("#")[1], sort.partition("#")[0], expires)
            for partition, sort, expires in found
            if partition.startswith(schema.SUMMARY_PREFIX) and sort.startswith("c")
        }

    present = ("local", "c2", False)
    ended = {("local", "c0"), ("ann", "c0"), ("local", "c1")}
    with Scenario() as account:
        stream = SimulatedTableStream(account)
        create(account, 3)
        account.ask("POST", "/v1/tasks", {"type": PLAIN}, headers={"x-duetime-owner": "ann"})
        account.run(MINUTE)
        for _ in range(2):
            recount(account, event=ANEW)
            create(account, 2)
            recount(account, 2)
        assert kept(account) == {present, *((*each, False) for each in ended)}
        account.stand_still()
        for _ in range(2):
            account.run(11 * HOUR)
            recount(account)
        assert kept(account) == {present, *((*each, False) for each in ended)}, "somebody may still count in them"
        account.run(2 * HOUR)
        recount(account, 4)
        assert kept(account) == {present, *((*each, True) for each in ended)}
        before = summary_of(account)
        account.run(2 * HOUR)
        assert account.expire()
        assert kept(account) == {present}
        assert summary_of(account) == before
        assert (before["total"], stream.is_read) == (7, True)


def test_operators_see_the_numbers_of_each_owner_page_by_page() -> None:
    """Operators see the numbers of owners by name; other callers get 403."""
    owners = ["123456789012", "ann", "bob@example.org", "local"]
    with Scenario() as account:
        SimulatedTableStream(account)
        for number, owner in enumerate(owners, 1):
            for _ in range(number):
                account.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 600}, headers=owned(owner))
        account.run(MINUTE)
        found, token = [], ""
        while token is not None:
            query = f"limit=3{token and f'&next_token={token}'}"
            page = account.ask("GET", "/v1/summary/owners", query=query).body
            found += page["owners"]
            token = page["next_token"]
        assert [(each["owner"], each["total"]) for each in found] == [
            (owner, number) for number, owner in enumerate(owners, 1)
        ]
        assert all(each["states"] == {"scheduled": each["total"]} and each["is_complete"] for each in found)
    with Scenario() as account:
        account.environ |= {Variable.OPERATORS: "somebody-else", Variable.ADMINS: ""}
        assert account.ask("GET", "/v1/summary/owners").status == 403


class RecountedSimulation(CountedSimulation):
    """A fault simulation with constant recounts, whose stream is read only from halfway on."""

    reading = 120 * MINUTE

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.stream.dead_until = self.time.now() + MINUTE
        self.time.start_process(self._lose_and_recount)

    def _lose_and_recount(self) -> None:
        self.take(MINUTE - SECOND)
        for shard in self.stream.shards:
            # The writes so far are lost, because the stream is read from this position.
            shard.position = len(shard.records)
        self.dynamodb.page = 40
        while True:
            self.take(20 * SECOND)
            self.wait_for(self.invoke("broadcast", {"recount": "continue"}))

    def _read_all(self) -> None:
        # Older tasks that have changed are counted by the next recount, so no task may change any more.
        while (found := self.users.ask("GET", "/v1/schedules")) is None or found.status != 200:
            self.take(SECOND)
        for name in [each["name"] for each in found.body["schedules"] if each["state"] == "active"]:
            self.users.ask("POST", f"/v1/schedules/{name}/pause")
        self.take(10 * MINUTE)
        for _ in range(4):
            self.wait_for(self.invoke("broadcast", ANEW))
            self.take(5 * MINUTE)
            super()._read_all()
            if all(found == wanted for found, wanted in self.read.values()):
                return


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 16))
def test_the_summary_equals_the_table_after_a_simulation_with_lost_changes(seed: int) -> None:
    """Despite crashes, lost changes and constant recounts, the summary equals the table in the end."""
    simulation = RecountedSimulation(seed)
    simulation.simulate(2 * MINUTE)
    assert simulation.read
    for found, wanted in simulation.read.values():
        assert found == wanted


def owned(owner: str) -> dict[str, str]:
    """The header that names an owner."""
    return {"x-duetime-owner": owner}
