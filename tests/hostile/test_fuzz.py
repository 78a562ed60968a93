"""Tests that no request from a stranger fails internally, and that refused requests have no effect."""

from __future__ import annotations

import base64
import json
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from duetime import composition
from duetime.composition.tasks import TaskServices
from duetime.contract.openapi.document import OPERATIONS
from duetime.domain.errors import KeyReused
from duetime.domain.limits import MAX_BODY_BYTES
from tests.hostile.corpus import BODIES, HOLE, MORE_BODIES, TASK, Corpus, Hostile
from tests.hostile.drawn import Drawn
from tests.hostile.fuzz import Fuzzer
from tests.hostile.grounds import InProcess
from tests.hostile.texts import DEEP, VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS = 1_500
EXAMPLES = 3
TASKS = "/v1/tasks"
AT_THE_DOOR = {"fields_invalid", "parameters_invalid", "body_unreadable", "media_type_unsupported"}
"""The codes of problems whose requests were not read, or were not read completely."""


@pytest.fixture(scope="module")
def grounds() -> InProcess:
    """The api function with fakes of AWS, and with a few resources of every kind."""
    found = InProcess()
    with found.used():
        found.fresh_world()
    return found


@pytest.fixture
def fuzzer(grounds: InProcess) -> Iterator[Fuzzer]:
    """A fuzzer that no other test has used."""
    with grounds.used():
        yield Fuzzer(grounds)


@pytest.fixture
def fresh(fuzzer: Fuzzer) -> Fuzzer:
    """A fuzzer whose stores no other test has changed."""
    fuzzer.grounds.fresh_world()
    return fuzzer


def encoded(data: bytes) -> Hostile:
    """A create request whose body the gateway passes on as Base64."""
    return Hostile("POST", TASKS, raw=base64.b64encode(data).decode(), is_base64=True)


# Each request has the set of statuses that are possible in its response.
BYTES: list[tuple[str, Hostile, set[int]]] = [
    ("no body", Hostile("POST", TASKS), {400}),
    ("100,000 levels of arrays", Hostile("POST", TASKS, raw="[" * DEEP), {400, 422}),
    ("100,000 levels of objects", Hostile("POST", TASKS, raw='{"a":' * DEEP), {400, 413, 422}),
    (
        "100,000 levels in the payload",
        Hostile("POST", TASKS, raw='{"type":"x","payload":' + "[" * DEEP + "]" * DEEP + "}"),
        {422},
    ),
    ("too many bytes", Hostile("POST", TASKS, raw='{"type":"x","payload":"' + "x" * MAX_BODY_BYTES + '"}'), {413}),
    ("too many spaces", Hostile("POST", TASKS, raw=" " * (MAX_BODY_BYTES + 1)), {400, 413}),
    ("too many bytes in Base64", encoded(b'{"type":"x","payload":"' + b"x" * MAX_BODY_BYTES + b'"}'), {413}),
    ("a number of 5,000 digits", Hostile("POST", TASKS, raw='{"type":"x","payload":' + "9" * 5_000 + "}"), {422}),
    ("NaN", Hostile("POST", TASKS, raw='{"type":"x","payload":NaN}'), {400, 422}),
    ("1e400", Hostile("POST", TASKS, raw='{"type":"x","payload":1e400}'), {400, 422}),
    ("an escaped lone surrogate", Hostile("POST", TASKS, raw='{"type":"x","payload":"\\ud800"}'), {422}),
    ("an unescaped lone surrogate", Hostile("POST", TASKS, raw='{"type":"x","payload":"\ud800"}'), {400, 422}),
    ("a lone surrogate in a key", Hostile("POST", TASKS, raw='{"type":"x","payload":{"\\ud800":1}}'), {422}),
    ("a repeated key", Hostile("POST", TASKS, raw='{"type":"x","type":"y"}'), {422}),
    ("a byte order mark", Hostile("POST", TASKS, raw='\ufeff{"type":"x"}'), {400}),
    ("a byte order mark in Base64", encoded(b'\xef\xbb\xbf{"type":"x"}'), {400}),
    ("UTF-16", encoded('{"type":"x"}'.encode("utf-16")), {400}),
    ("UTF-32", encoded('{"type":"x"}'.encode("utf-32")), {400}),
    ("Latin-1", encoded('{"type":"x","name":"\u00e9"}'.encode("latin-1")), {400}),
    ("overlong UTF-8", encoded(b'{"type":"\xc0\xaf"}'), {400}),
    ("zero bytes", encoded(b"\x00" * 100), {400}),
    ("a gzip header", encoded(b"\x1f\x8b\x08\x00"), {400}),
    ("JSON that is declared as Base64", Hostile("POST", TASKS, raw='{"type":"x"}', is_base64=True), {400}),
    ("Base64 that is declared as JSON", Hostile("POST", TASKS, raw=base64.b64encode(b'{"type":"x"}').decode()), {400}),
    ("Base64 with a line break", Hostile("POST", TASKS, raw="eyJ0\neXBl", is_base64=True), {400}),
    ("two bodies", Hostile("POST", TASKS, raw='{"type":"x"}{"type":"x"}'), {400}),
    ("a comment", Hostile("POST", TASKS, raw='{"type":"x"}//'), {400}),
    ("an id of 5,000 digits", Hostile("GET", f"{TASKS}/{'0' * 5_000}"), {404}),
    ("an id beyond the calendar", Hostile("GET", f"{TASKS}/{'7' + 'Z' * 25}"), {404}),
    ("an id with a zero byte", Hostile("GET", f"{TASKS}/%00"), {404}),
    ("a path to a parent folder", Hostile("GET", "/v1/../../etc/passwd"), {404}),
    ("a token that was never issued", Hostile("GET", TASKS, "next_token=AAAA"), {400}),
    ("2,000 parameters", Hostile("GET", TASKS, "&".join(f"p{n}=1" for n in range(2_000))), {400}),
    ("a parameter that is not UTF-8", Hostile("GET", TASKS, "name=%ff"), {400}),
    ("an owner with a separator", Hostile("GET", TASKS, headers={"X-Duetime-Owner": "a#1"}), {400}),
    ("an owner with a line break", Hostile("GET", TASKS, headers={"X-Duetime-Owner": "a\r\nb"}), {400}),
    ("a key of 9,000 characters", Hostile("POST", TASKS, headers={"Idempotency-Key": "k" * 9_000}, raw="{}"), {400}),
    ("an unknown method", Hostile("BREW", TASKS), {405}),
]


@pytest.mark.parametrize(("request_", "statuses"), [case[1:] for case in BYTES], ids=[case[0] for case in BYTES])
def test_hostile_bytes_are_refused(fuzzer: Fuzzer, request_: Hostile, statuses: set[int]) -> None:
    """Hostile bytes are refused without a write, and the response is a problem that names the reason."""
    answer = fuzzer.send(request_)
    assert answer is not None
    assert (fuzzer.broken, answer.status in statuses) == ([], True), answer.text[:300]


def test_a_hostile_value_is_accepted_or_rejected_with_the_field(fresh: Fuzzer) -> None:
    """A task with a hostile value in any field is accepted, or refused with the field's name.

    If a value makes the whole body unreadable or too deep, the response names the body, the list or the task.
    """
    for name in TASK:
        for text in VALUES:
            raw = json.dumps({**TASK, name: HOLE}).replace(json.dumps(HOLE), text)
            answer = fresh.send(Hostile("POST", f"{TASKS}/batch", raw=f'{{"tasks":[{raw}]}}'))
            assert answer is not None
            (result,) = answer.body["results"] if answer.status == 200 else [{"problem": answer.problem}]
            if (problem := result.get("problem")) is not None:
                fields = [each["field"] for each in problem["errors"]]
                wholes = {"body", "tasks", "tasks[0]"}
                assert any(each in wholes or each.startswith(f"tasks[0].{name}") for each in fields), (name, fields)
    assert fresh.broken == []


def test_damaged_requests_raise_no_exception_and_rejected_requests_write_nothing(fuzzer: Fuzzer) -> None:
    """Damaged requests for every operation cause no exception, and refused requests write nothing."""
    fuzzer.lay(REQUESTS)
    assert fuzzer.broken == []
    assert set(fuzzer.hit) == {one.id for one in OPERATIONS}
    assert set(fuzzer.answers) - {502, 504} <= set(range(500))


def test_the_corpus_has_a_valid_request_for_each_operation(fresh: Fuzzer, grounds: InProcess) -> None:
    """A valid request for each operation passes the first checks; otherwise, its damaged forms would test nothing."""
    assert isinstance(fresh.grounds, InProcess)
    corpus = Corpus(0, fresh.grounds.fresh_world())
    tables = grounds.tables()
    answers = {}
    for one in OPERATIONS:
        # A later request may depend on the changes of an earlier request.
        grounds.restore(tables)
        answers[one.id] = fresh.send(corpus.good(one, existing=1))
    codes = {name: answer.problem["code"] for name, answer in answers.items() if answer and answer.status >= 400}
    assert {name: code for name, code in codes.items() if code in AT_THE_DOOR} == {}


def test_the_corpus_has_every_field_of_every_request() -> None:
    """Every request field except tokens, which only the API can issue, is in a body and gets hostile values."""
    for operation in OPERATIONS:
        bodies = [BODIES.get(operation.id, {}), *MORE_BODIES.get(operation.id, ())]
        fields = {
            field.alias or name for name, field in (operation.body.model_fields if operation.body else {}).items()
        }
        # The body of a PUT request may repeat the resource's identifier, which must match the path.
        exempt = {"next_token", "confirmation_token", *({"name", "scope"} if operation.method == "PUT" else ())}
        assert fields - exempt - {name for body in bodies for name in body} == set(), operation.id


def test_additional_bodies_of_an_operation_are_valid(fresh: Fuzzer) -> None:
    """An operation's additional bodies, whose fields cannot be combined with those of the first body, are also read."""
    known = fresh.grounds.fresh_world()
    for operation in OPERATIONS:
        for body in MORE_BODIES.get(operation.id, ()):
            request = Corpus(0, known).good(operation, existing=1)
            answer = fresh.send(Hostile(request.method, request.path, raw=json.dumps(body)))
            assert answer is not None
            assert answer.status < 400 or answer.problem["code"] not in AT_THE_DOOR, (operation.id, answer.text)


def test_the_same_seed_sends_the_same_requests() -> None:
    """Two runs with the same seed send the same requests, so a failure can be reproduced."""
    assert list(islice(Corpus(3, {}), 50)) == list(islice(Corpus(3, {}), 50)) != list(islice(Corpus(4, {}), 50))


@pytest.mark.slow
def test_responses_match_the_openapi_document(fuzzer: Fuzzer) -> None:
    """Requests drawn from the document get documented statuses, and response bodies that match their schemas."""
    Drawn(fuzzer).lay(EXAMPLES)
    assert fuzzer.broken == []


def test_the_fuzzer_finds_a_defect_and_a_refused_request_that_wrote(
    fresh: Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fuzzer finds a defect in a route, also for HEAD, and a refused request that has written to a store."""
    monkeypatch.setattr("duetime.services.tasks.read.TaskReader.record", lambda *_: 1 / 0)
    fresh.send(Hostile("GET", f"{TASKS}/01M7XZ8CGJ0013P2ZBN3YDT3DX"))
    creating = composition.composed(TaskServices).creator
    create = type(creating).create_once

    def refuse(*given: Any) -> NoReturn:  # noqa: ANN401 - as in the original
        create(*given)
        raise KeyReused

    monkeypatch.setattr(type(creating), "create_once", refuse)
    fresh.send(Hostile("POST", TASKS, raw='{"type":"echo"}'))
    fresh.send(Hostile("HEAD", f"{TASKS}/01M7XZ8CGJ0013P2ZBN3YDT3DX"))
    found = [wrong for wrong, _ in fresh.broken]
    assert found == ["500 internal", "refused, yet wrote ['put_item', 'send_message_batch']", "500 to HEAD"]
