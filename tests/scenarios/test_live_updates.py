"""Watchers get every change, or a note that they missed some changes, and end with the correct view."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.limits import MAX_FRAME_BYTES, MAX_SUBSCRIPTIONS, WATCH_CONNECTION_LIFE, WATCH_TICKET_LIFE
from duetime.domain.times import HOUR
from tests.scenarios.live import Live, Watcher
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_testing.simulation.faults import Call

LATER = 7_200


@pytest.fixture
def live() -> Iterator[Live]:
    """An account with clients that watch."""
    with Live() as live:
        yield live


def create(live: Live, owner: str = "local", **body: Any) -> str:  # noqa: ANN401 - any JSON
    """Create a task that is not due for a long time; return its id."""
    wanted = {"type": PLAIN, "delay_seconds": LATER, **body}
    answer = live.ask("POST", "/v1/tasks", wanted, headers={"x-duetime-owner": owner})
    assert answer.status == 201, answer
    return str(answer.body["id"])


def agrees(live: Live, watcher: Watcher) -> bool:
    """Whether a client's view of each task agrees with the REST API."""
    known = {id_: item for id_, item in watcher.view.items() if item is not None}
    for id_, item in known.items():
        task = live.ask("GET", f"/v1/tasks/{id_}").body
        if (item["state"], item["version"]) != (task["state"], task["version"]):
            return False
    return True


def test_a_client_gets_a_tasks_state_and_then_each_change(live: Live) -> None:
    """A client gets a task's current state, and then each change with increasing versions."""
    everything, one = live.connect(), live.connect()
    assert everything.subscribe() == {"kind": "snapshot", "ref": "1", "version": 0, "item": None}
    task_id = create(live, delay_seconds=0, tags={"a": "b"}, payload={"secret": "x"})
    snapshot = one.subscribe(f"task:{task_id}")
    assert (snapshot["item"]["id"], snapshot["item"]["tags"]) == (task_id, {"a": "b"})
    assert live.run_until(lambda: live.record(task_id).finished_at is not None)
    live.broadcast(size=1)
    for watcher in (everything, one):
        changes = [change for frame in watcher.frames if frame["kind"] == "change" for change in frame["changes"]]
        versions = [change["version"] for change in changes]
        assert versions == sorted(versions)
        assert changes[-1]["item"]["state"] == "succeeded"
        assert "secret" not in "".join(watcher.texts)
        watcher.take(watcher.frames)
        assert agrees(live, watcher)


@pytest.mark.slow
def test_a_subscription_during_a_thousand_changes_misses_none(live: Live) -> None:
    """Whenever a subscription begins amid concurrent changes, the client's final view is correct."""
    ids = [create(live) for _ in range(12)]
    for start in range(0, 24, 6):
        watcher = live.connect()
        writes: list[Any] = []
        for number in range(24):
            if number == start:
                for id_ in ids:
                    begin(live, watcher, f"task:{id_}", id_)
            writes += [live.send("PATCH", f"/v1/tasks/{id_}", {"tags": {"n": f"{start} {number}"}}) for id_ in ids]
            live.run(3)
            if number % 5 == 0:
                live.broadcast()
        assert live.run_until(partial(all, writes))
        live.broadcast()
        live.run(SECOND)
        watcher.take(watcher.frames)
        assert watcher.view.keys() == set(ids)
        assert agrees(live, watcher)
    assert len(live.stream.records) > 1_000


def begin(live: Live, watcher: Watcher, topic: str, ref: str) -> None:
    """Subscribe while other work continues."""
    body = json.dumps({"do": "subscribe", "ref": ref, "topic": topic})
    live.invoke("watch", {"requestContext": {"connectionId": watcher.id, "eventType": "MESSAGE"}, "body": body})


@pytest.mark.parametrize("at", range(5))
def test_a_change_at_any_point_during_a_subscription_reaches_the_client(live: Live, at: int) -> None:
    """A change between any two calls of the subscribing function reaches the client."""
    task_id, watcher = create(live), live.connect()
    live.broadcast()
    calls: list[Call] = []
    changed: list[list[Any]] = []

    def change(call: Call) -> None:
        if call.machine.function != "watch":
            return
        calls.append(call)
        if len(calls) == at + 1:
            changed.append(live.send("POST", f"/v1/tasks/{task_id}/pause"))
            live.take(2 * SECOND)
            live.invoke("broadcast", live.stream.event(live.handled))
            live.handled = len(live.stream.records)
            live.take(2 * SECOND)

    live.before_call = change
    watcher.subscribe(f"task:{task_id}")
    live.before_call = None
    assert len(calls) == 5
    assert changed[0][0].status == 200
    watcher.take(watcher.frames)
    item = watcher.view[task_id]
    assert item is not None
    assert item["state"] == "paused"


@pytest.mark.parametrize("seed", range(5))
def test_a_clients_view_agrees_with_rest_despite_lost_or_reordered_frames(live: Live, seed: int) -> None:
    """A client that reads the list again has the correct view despite lost, duplicate and reordered frames."""
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
    watchers = [live.connect(), live.connect()]
    for watcher in watchers:
        watcher.subscribe()
    ids = [create(live) for _ in range(10)]
    for _ in range(30):
        id_ = chance.choice(ids)
        live.ask("POST", f"/v1/tasks/{id_}/{chance.choice(['pause', 'resume', 'cancel'])}")
        if chance.random() < 0.5:
            live.broadcast(size=chance.choice([1, 3, 500]))
    live.broadcast()
    for watcher in watchers:
        frames = [frame for frame in watcher.frames if chance.random() > 0.4]
        frames += chance.choices(frames, k=10)
        chance.shuffle(frames)
        watcher.take(frames)
        watcher.read_again()
        assert watcher.view.keys() == set(ids)
        assert agrees(live, watcher)


def test_late_messages_do_not_replace_newer_state_read_over_rest(live: Live) -> None:
    """Late messages that are older than what the client has read over REST do not change its view."""
    watcher = live.connect()
    watcher.subscribe()
    ids = [create(live) for _ in range(6)]
    live.broadcast()
    watcher.take(watcher.frames)
    for action in ("pause", "resume", "pause", "cancel"):
        for id_ in ids[:4]:
            assert live.ask("POST", f"/v1/tasks/{id_}/{action}").status == 200
        live.run(15 * MINUTE)
    assert not agrees(live, watcher)
    watcher.read_again()
    ids.append(create(live))
    versions, seen = dict(watcher.versions), len(watcher.texts)
    live.broadcast(size=3)
    watcher.take(watcher.frames[seen:])
    assert {id_: watcher.versions[id_] for id_ in versions} == versions
    assert watcher.view.keys() == set(ids)
    assert agrees(live, watcher)


def test_an_unreadable_record_does_not_block_other_changes(live: Live) -> None:
    """If a record cannot be read, the other records in its batch are sent, and so is the record's next change."""
    watcher = live.connect()
    watcher.subscribe()
    before, poisoned, after = (create(live) for _ in range(3))
    keys = [record["dynamodb"]["Keys"]["s"]["S"] for record in live.stream.records]
    live.stream.records[keys.index(poisoned)]["dynamodb"]["NewImage"][schema.VERSION_OF_SCHEMA] = {"N": "99"}
    live.broadcast()
    watcher.take(watcher.frames)
    assert watcher.view.keys() == {before, after}
    live.ask("POST", f"/v1/tasks/{poisoned}/pause")
    live.broadcast()
    watcher.take(watcher.frames)
    assert watcher.view.keys() == {before, poisoned, after}
    assert agrees(live, watcher)


def test_too_many_changes_are_sent_as_a_stale_message(live: Live) -> None:
    """If a batch has too many changes for a client, the client gets `stale` and corrects its view by reading again."""
    watcher = live.connect()
    watcher.subscribe()
    batch = {"tasks": [{"type": PLAIN, "delay_seconds": LATER, "tags": {"a": "é" * 64}} for _ in range(60)]}
    for _ in range(2):
        assert live.ask("POST", "/v1/tasks/batch", batch).status == 200
    seen = len(watcher.texts)
    live.broadcast()
    (told,) = watcher.frames[seen:]
    assert told == {"kind": "stale", "refs": ["1"]}
    live.ask("POST", "/v1/tasks/batch", batch)
    seen = len(watcher.texts)
    live.broadcast()
    assert len(watcher.texts) > seen
    assert all(len(text.encode()) <= MAX_FRAME_BYTES for text in watcher.texts)
    assert sum(len(frame["changes"]) for frame in watcher.frames[seen:]) == 60
    watcher.take(watcher.frames)
    assert watcher.stale
    watcher.read_again()
    assert len(watcher.view) == 180


def test_a_subscription_to_another_owners_resources_is_rejected(live: Live) -> None:
    """A subscription to another owner's task, schedule or topology is refused and not stored."""
    task_id = create(live)
    live.ask("POST", "/v1/schedules", {"name": "nightly", "cron": "0 1 * * *", "task": {"type": PLAIN}})
    stranger = live.connect(owner="stranger")
    for topic, code in (
        (f"task:{task_id}", "task_not_found"),
        (f"topology:{task_id}", "task_not_found"),
        ("schedule:nightly", "schedule_not_found"),
    ):
        assert stranger.subscribe(topic)["code"] == code
    assert live.items(schema.WATCH_SUBSCRIPTION_PREFIX) == []
    stranger.subscribe("mine")
    seen = len(stranger.texts)
    live.ask("POST", f"/v1/tasks/{task_id}/pause")
    live.ask("POST", "/v1/schedules/nightly/pause")
    live.broadcast()
    assert len(stranger.texts) == seen


def test_a_ticket_is_valid_once_and_for_half_a_minute(live: Live) -> None:
    """A ticket that is used, expired or invented cannot open a connection."""
    ticket = live.ticket()
    live.connect(ticket)
    assert live.event("second", "CONNECT", ticket=ticket) == 401
    late = live.ticket()
    live.run(WATCH_TICKET_LIFE + 6 * SECOND)
    assert live.event("late", "CONNECT", ticket=late) == 401
    for made_up in ("", "x", "0" * 64, "\ud800"):
        assert live.event("made-up", "CONNECT", ticket=made_up) == 401
    assert live.event("none", "CONNECT") == 401
    assert {item["p"]["S"] for item in live.items(schema.WATCH_CONNECTION_PREFIX)} == {"wc#connection1="}


def test_the_table_stores_no_usable_ticket(live: Live) -> None:
    """The table stores tickets only in a form that cannot open a connection."""
    ticket = live.ticket()
    assert ticket not in json.dumps(live.items())


def test_a_ticket_is_kept_for_as_long_as_it_can_be_used(live: Live) -> None:
    """TTL removes no ticket that can still be used."""
    live.ticket()
    issued = live.now
    (item,) = live.items(schema.WATCH_TICKET_PREFIX)
    assert int(item[schema.TTL]["N"]) * SECOND >= issued + WATCH_TICKET_LIFE - 10 * SECOND
    assert int(item[schema.TTL]["N"]) * SECOND >= int(item["e"]["N"])


def test_a_connection_is_kept_for_longer_than_it_can_be_open(live: Live) -> None:
    """The gateway closes a connection after two hours, and TTL removes the connection and its subscriptions later."""
    watcher = live.connect()
    watcher.subscribe()
    kept = [*live.items(schema.WATCH_CONNECTION_PREFIX), *live.items(schema.WATCH_SUBSCRIPTION_PREFIX)]
    assert len(kept) == 2
    assert all(int(item[schema.TTL]["N"]) * SECOND > live.now + 2 * HOUR for item in kept)
    live.run(WATCH_CONNECTION_LIFE + SECOND)
    live.expire()
    assert live.items(schema.WATCH_CONNECTION_PREFIX) == live.items(schema.WATCH_SUBSCRIPTION_PREFIX) == []


def test_a_vanished_connection_is_removed_at_the_next_push(live: Live) -> None:
    """If the gateway reports during a push that a connection is gone, the connection is removed."""
    watcher, other = live.connect(), live.connect()
    watcher.subscribe()
    other.subscribe()
    live.hang_up(watcher, told=False)
    create(live)
    live.broadcast()
    assert [item["s"]["S"] for item in live.items(schema.WATCH_SUBSCRIPTION_PREFIX)] == ["connection2=#0"]
    assert len(live.items(schema.WATCH_CONNECTION_PREFIX)) == 1
    assert other.frames[-1]["kind"] == "change"


def test_a_closed_connection_is_removed_with_its_subscriptions(live: Live) -> None:
    """When the gateway reports a connection's end, the connection and its subscriptions are removed."""
    watcher = live.connect()
    for ref in "ab":
        watcher.subscribe(ref=ref)
    live.hang_up(watcher)
    assert live.event(watcher.id, "DISCONNECT") == 200
    assert live.items("wc#") == live.items("ws#") == []


@pytest.mark.parametrize("what", ["process", "connection"])
@pytest.mark.parametrize("at", range(8))
def test_a_client_can_reconnect_after_a_failure_at_any_call(live: Live, at: int, what: str) -> None:
    """If a process or connection ends at any call, the client can open a new connection that works."""
    live.faulty = True
    calls: list[Call] = []
    connection = "dying="

    def cut(call: Call) -> None:
        if call.machine.function in {"watch", "broadcast"}:
            calls.append(call)
            if len(calls) == at + 1 and what == "process":
                call.machine.die()
            if len(calls) > at and what == "connection":
                live.connections.received.pop(connection, None)

    task_id = create(live)
    ticket = live.ticket()
    live.before_call = cut
    status = live.event(connection, "CONNECT", ticket=ticket)
    if status == 200:
        body = json.dumps({"do": "subscribe", "ref": "1", "topic": "mine"})
        live.event(connection, "MESSAGE", body=body)
        live.ask("POST", f"/v1/tasks/{task_id}/pause")
        invocation = live.invoke("broadcast", live.stream.event())
        live.run_until(lambda: invocation.strand is not None and invocation.strand.done, step=1)
        live.connections.received.pop(connection, None)
        live.event(connection, "DISCONNECT")
    assert len(calls) > at
    live.before_call = None
    watcher = live.connect()
    watcher.subscribe()
    live.ask("POST", f"/v1/tasks/{task_id}/resume")
    live.broadcast()
    watcher.take(watcher.frames)
    assert watcher.view.keys() == {task_id}
    assert agrees(live, watcher)
    assert [item["s"]["S"] for item in live.items("ws#")] == [f"{watcher.id}#0"]


def test_a_subscription_above_the_limit_of_a_connection_is_rejected(live: Live) -> None:
    """A subscription above the limit is refused, unless it replaces another subscription or another has ended."""
    watcher = live.connect()
    for number in range(MAX_SUBSCRIPTIONS):
        assert watcher.subscribe(ref=str(number))["kind"] == "snapshot"
    assert watcher.subscribe(ref="more")["code"] == "subscriptions_full"
    assert watcher.subscribe(ref="3", filter={"state": "failed"})["kind"] == "snapshot"
    assert watcher.say(do="unsubscribe", ref="7") == {"kind": "unsubscribed", "ref": "7"}
    assert watcher.say(do="unsubscribe", ref="never") == {"kind": "unsubscribed", "ref": "never"}
    assert watcher.subscribe(ref="more")["kind"] == "snapshot"
    assert len(live.items(schema.WATCH_SUBSCRIPTION_PREFIX)) == MAX_SUBSCRIPTIONS


def test_concurrent_subscriptions_do_not_exceed_the_limit(live: Live) -> None:
    """The limit on subscriptions is enforced even if a connection's messages are handled concurrently."""
    watcher = live.connect()
    for number in range(3 * MAX_SUBSCRIPTIONS):
        begin(live, watcher, "mine", f"r{number}")
    live.run(10 * SECOND)
    assert len(live.items(schema.WATCH_SUBSCRIPTION_PREFIX)) == MAX_SUBSCRIPTIONS
    kinds = [frame["kind"] for frame in watcher.frames]
    assert (kinds.count("snapshot"), kinds.count("error")) == (MAX_SUBSCRIPTIONS, 2 * MAX_SUBSCRIPTIONS)


@pytest.mark.parametrize(
    "text", ["", "[" * 50_000, "9" * 9_999, "null", '{"do":"subscribe"}', '{"do":{"$ne":1}}', "x" * 200_000, "\ud800"]
)
def test_the_response_to_an_invalid_message_names_the_error(live: Live, text: str) -> None:
    """The response to an invalid message names the error, and the connection's subscriptions continue."""
    watcher = live.connect()
    watcher.subscribe()
    assert watcher.send(text) == 200
    assert watcher.frames[-1]["kind"] == "error"
    assert len(watcher.texts[-1]) < 2_000
    create(live)
    live.broadcast()
    assert watcher.frames[-1]["kind"] == "change"


def test_a_message_from_an_unknown_connection_is_rejected(live: Live) -> None:
    """An unknown connection cannot subscribe."""
    watcher = live.connect()
    for item in live.items(schema.WATCH_CONNECTION_PREFIX):
        live.table.write(live.now, (item["p"]["S"], item["s"]["S"]), None)
    assert watcher.subscribe()["code"] == "unauthenticated"
    assert live.items(schema.WATCH_SUBSCRIPTION_PREFIX) == []
    assert watcher.say(do="ping", ref="p") == {"kind": "pong", "ref": "p"}


def test_a_blocked_connection_does_not_block_other_connections(live: Live) -> None:
    """If the gateway refuses one client's messages, other clients still get their messages."""
    slow, other = live.connect(), live.connect()
    slow.subscribe()
    other.subscribe()
    live.connections.refused.add(slow.id)
    create(live)
    live.broadcast()
    assert other.frames[-1]["kind"] == "change"
    live.connections.refused.clear()
    create(live)
    live.broadcast()
    slow.take(slow.frames)
    slow.read_again()
    assert len(slow.view) == 2


def test_a_batch_without_watchers_costs_one_read_per_owner(live: Live) -> None:
    """If nobody watches, the function reads the watchers once per owner in a batch, and sends nothing."""
    for owner in ("ann", "bob"):
        for _ in range(5):
            create(live, owner)
    calls: list[Call] = []
    live.before_call = lambda call: calls.append(call) if call.machine.function == "broadcast" else None
    live.broadcast()
    live.before_call = None
    of_watching = [call for call in calls if str(call.partition).startswith(("ws#", "wc#", "wt#"))]
    assert [(call.operation, call.request["ConsistentRead"]) for call in of_watching] == [("query", True)] * 2
    assert {call.service for call in calls} == {"dynamodb"}


def test_a_filter_subscription_reports_tasks_that_enter_and_leave(live: Live) -> None:
    """A task that stops matching a subscription's filter is sent once more, marked as having left."""
    watcher = live.connect()
    watcher.subscribe(filter={"state": "scheduled", "tags": {"team": "dba"}})
    mine, _ = create(live, tags={"team": "dba"}), create(live)
    live.broadcast()
    live.ask("POST", f"/v1/tasks/{mine}/pause")
    live.broadcast()
    live.ask("POST", f"/v1/tasks/{mine}/cancel")
    live.broadcast()
    changes = [change for frame in watcher.frames if frame["kind"] == "change" for change in frame["changes"]]
    assert [(each["id"], each["refs"], each["left"]) for each in changes] == [(mine, ["1"], []), (mine, [], ["1"])]


def test_watchers_of_a_schedule_get_its_changes_and_runs(live: Live) -> None:
    """Watchers of a schedule get its pause, its tasks and its deletion."""
    live.ask("POST", "/v1/schedules", {"name": "often", "rate": "1 minute", "task": {"type": PLAIN}})
    watcher = live.connect()
    snapshot = watcher.subscribe("schedule:often")
    assert (snapshot["item"]["kind"], snapshot["item"]["state"]) == ("schedule", "active")
    live.run(150 * SECOND)
    live.ask("POST", "/v1/schedules/often/pause")
    live.broadcast()
    live.ask("DELETE", "/v1/schedules/often")
    live.broadcast()
    changes = [change for frame in watcher.frames if frame["kind"] == "change" for change in frame["changes"]]
    assert {each["item"]["schedule"] for each in changes if each["id"] != "often"} == {"often"}
    states = [each["item"] and each["item"]["state"] for each in changes if each["id"] == "often"]
    assert states[-2:] == ["paused", None]
    versions = [snapshot["version"], *(each["version"] for each in changes if each["id"] == "often")]
    assert versions == sorted(set(versions))
