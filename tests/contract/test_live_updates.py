from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

from duetime.contract.live_updates import asyncapi
from duetime.contract.live_updates.encoding import JsonEncoder
from duetime.contract.live_updates.messages import MessageRefused, Ping, Subscribe, Unsubscribe, read_message
from duetime.domain.errors import Unavailable
from duetime.domain.limits import MAX_FRAME_BYTES, MAX_PUSHED_CHANGES, MAX_WATCH_MESSAGE_BYTES
from duetime.domain.live_updates import Notice, Topic, TopicKind
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import State
from tests.contract.properties import JSON, unhurried
from tests.domain.live_updates.change_snapshots import change, snapshot, task_id, write

ENCODER = JsonEncoder()
ID = task_id(1).text
WIDE = {f"{number}{chr(0x10000)}{'é' * 29}": "\U0001f4a5" * 64 for number in range(10)}
"""The largest possible tags, as JSON."""


def subscribe(**fields: object) -> str:
    """Return the text of a message."""
    return json.dumps({"do": "subscribe", "ref": "1", "topic": "mine", **fields})


def test_every_kind_of_client_message_is_read() -> None:
    """Each kind of message is read, with ids in upper or lower case."""
    assert read_message(subscribe(topic=f"task:{ID.lower()}")) == Subscribe(
        "1", Topic(TopicKind.TASK, ID), TaskFilter()
    )
    assert read_message(subscribe(topic="schedule:a.b:c")) == Subscribe(
        "1", Topic(TopicKind.SCHEDULE, "a.b:c"), TaskFilter()
    )
    wanted = {"state": ["failed", "running"], "tags": {"a": "b"}, "due_after": "1970-01-01T00:00:01Z"}
    assert read_message(subscribe(filter=wanted)) == Subscribe(
        "1",
        Topic(TopicKind.MINE),
        TaskFilter(states=(State.FAILED, State.RUNNING), tags={"a": "b"}, due=Range(after=1000)),
    )
    assert read_message('{"do":"unsubscribe","ref":"x"}') == Unsubscribe("x")
    assert read_message('{"do":"ping"}') == Ping(None)


@pytest.mark.parametrize(
    ("text", "ref", "field"),
    [
        ("", None, "body"),
        ("[", None, "body"),
        ("null", None, "body"),
        ("[" * 100_000, None, "body"),
        ("9" * 5_000, None, "body"),
        ('{"do":' * 2_000, None, "do"),
        ('{"ref":"1"}', "1", "do"),
        ('{"do":["subscribe"],"ref":"1"}', "1", "do"),
        ('{"do":"drop table","ref":"1"}', "1", "do"),
        ('{"do":"ping","ref":NaN}', None, "ref"),
        ('{"do":"ping","ref":"\\ud800"}', None, "ref"),
        ('{"do":"ping","do":"ping"}', None, "do"),
        (subscribe(ref="x" * 65), None, "ref"),
        (subscribe(ref=1), None, "ref"),
        (subscribe(ref=""), "", "ref"),
        (subscribe(topic="task:you"), "1", "topic"),
        (subscribe(topic="task:" + "Z" * 26), "1", "topic"),
        (subscribe(topic="mine:x"), "1", "topic"),
        (subscribe(topic="everybody"), "1", "topic"),
        (subscribe(topic=f"task:{ID}", filter={"type": "x"}), "1", "filter"),
        (subscribe(filter={"owner": "you"}), "1", "filter.owner"),
        (subscribe(filter={"state": "gone"}), "1", "filter.state"),
        (subscribe(owner="you"), "1", "owner"),
        (subscribe(filter={"type": "x" * MAX_WATCH_MESSAGE_BYTES}), None, "body"),
    ],
)
def test_an_invalid_message_is_rejected_with_its_field(text: str, ref: str | None, field: str) -> None:
    """Compression bombs, wrong types and unknown words raise only the documented error, which names the wrong field."""
    with pytest.raises(MessageRefused) as refusal:
        read_message(text)
    told = json.loads(ENCODER.error(refusal.value.ref, refusal.value.error))
    assert (told["kind"], told["ref"]) == ("error", ref)
    assert told["errors"][0]["field"] == field


@unhurried
@given(
    st.one_of(
        st.text(), JSON.map(json.dumps), st.dictionaries(st.sampled_from(["do", "ref", "topic"]), JSON).map(json.dumps)
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is either read or refused, and no unexpected error is raised."""
    refusal = None
    try:
        read_message(text)
    except MessageRefused as error:
        refusal = error
    if refusal is not None:
        assert json.loads(ENCODER.error(refusal.ref, refusal.error))["code"] in {"body_unreadable", "fields_invalid"}


def test_an_internal_error_is_reported_only_as_unavailability() -> None:
    """If a service behind the API fails, the message says only that the API is unavailable."""
    told = json.loads(ENCODER.error("1", Unavailable("table tasks of 123456789012")))
    assert (told["code"], "123456789012" in json.dumps(told)) == ("unavailable", False)


@given(st.integers(1, MAX_PUSHED_CHANGES), st.booleans())
def test_no_frame_of_changes_exceeds_one_billed_message(count: int, wide: bool) -> None:  # noqa: FBT001 - drawn
    """No frame is empty or larger than 32 KB, and no change is omitted, however large the records are."""
    error = TaskError("E" * 64, "\x00" * 256)
    big = replace(snapshot(1, 1, tags=WIDE), error=error) if wide else snapshot(1, 1)
    notices = [Notice(replace(write(number, 1), after=big), ("1",)) for number in range(count)]
    frames = ENCODER.changes(notices)
    assert all(len(frame.encode()) <= MAX_FRAME_BYTES for frame in frames)
    told = [entry["id"] for frame in frames for entry in json.loads(frame)["changes"]]
    assert told == [task_id(number).text for number in range(count)]
    assert all(json.loads(frame)["changes"] for frame in frames)
    assert len(frames) < 2 or len(frames[0]) + len(frames[1]) > MAX_FRAME_BYTES


def test_a_frame_contains_no_payload_or_result() -> None:
    """A frame has the fields of an entry in a list; contents and tokens can be read only over REST."""
    frame = ENCODER.changes([Notice(change(None, snapshot(1, 1, name="n")), ("1",), ("2",))])[0]
    (entry,) = json.loads(frame)["changes"]
    assert (entry["id"], entry["version"], entry["refs"], entry["left"]) == (ID, 1, ["1"], ["2"])
    assert entry["item"]["name"] == "n"
    assert not {"payload", "result", "target", "callback_url", "owner"} & entry["item"].keys()
    assert "backup" not in frame


def test_the_asyncapi_document_describes_each_state_in_a_sentence() -> None:
    """Descriptions in the AsyncAPI document are plain text without docstring sections."""
    schemas = asyncapi.document()["components"]["schemas"]
    assert "`waiting`: waits for" in schemas["State"]["description"]
    assert "Attributes:" not in json.dumps(schemas)


def test_every_message_is_valid_by_the_asyncapi_document() -> None:
    """Sent and received messages validate against the AsyncAPI document's schemas."""
    described = asyncapi.document()

    def check(model: str, text: str) -> None:
        schema = {"$ref": f"#/components/schemas/{model}", "components": described["components"]}
        Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(json.loads(text))

    task = Notice(write(1, 2), ("1",), ("2",))
    deleted = Notice(change(snapshot(1, 2), None), (), ("2",))
    (frame,) = ENCODER.changes([task, deleted])
    check("ChangeFrame", frame)
    check("SnapshotFrame", ENCODER.snapshot("1", snapshot(1, 1)))
    check("SnapshotFrame", ENCODER.snapshot("1", None))
    check("StaleFrame", ENCODER.stale(["1"]))
    check("PongFrame", ENCODER.pong(None))
    check("UnsubscribedFrame", ENCODER.unsubscribed("1"))
    check("ErrorFrame", ENCODER.error("1", Unavailable("throttled")))
    check("SubscribeMessage", subscribe(filter={"state": "failed", "tags": {"a": "b"}}))
    check("UnsubscribeMessage", '{"do":"unsubscribe","ref":"1"}')
    check("PingMessage", '{"do":"ping"}')
    for message in described["channels"]["live"]["messages"].values():
        assert message["$ref"].rpartition("/")[2] in described["components"]["messages"]
