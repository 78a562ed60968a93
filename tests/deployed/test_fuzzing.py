"""Tests with hostile input that is sent over HTTP and through a gateway to the deployed function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.limits import MAX_BODY_BYTES
from tests.deployed.fuzzing import fuzzed
from tests.hostile.corpus import Hostile
from tests.hostile.texts import DEEP

if TYPE_CHECKING:
    from duetime_local.stack import Stack

REQUESTS = 80
TASKS = "/v1/tasks"
BYTES = [
    ('{"type":"x","payload":' + "[" * DEEP + "]" * DEEP + "}", 422),
    ('{"type":"x","payload":' + "9" * 5_000 + "}", 422),
    ('{"type":"x","payload":NaN}', 422),
    ('{"type":"x","payload":1e400}', 422),
    ('{"type":"x","payload":"\\ud800"}', 422),
    ('{"type":"x","payload":"' + "x" * MAX_BODY_BYTES + '"}', 413),
    ('{"type":["x"],"delay_seconds":"soon"}', 422),
    ("\x00", 400),
]

pytestmark = pytest.mark.deployed


@pytest.mark.slow
def test_a_request_that_writes_to_the_table_is_detected(deployed: Stack) -> None:
    """The fuzzer knows which items a request has written, so that it finds writes of refused requests."""
    with fuzzed(deployed) as fuzzer:
        fuzzer.grounds.fresh_world()
        fuzzer.grounds.begin()
        assert fuzzer.grounds.written() == []
        fuzzer.grounds.api.send("POST", TASKS, {"type": "echo", "delay_seconds": 3600})
        assert len(fuzzer.grounds.written()) == 1


@pytest.mark.slow
def test_a_deployed_stack_withstands_fuzzing(deployed: Stack) -> None:
    """No request fails with an internal error, and refused requests write nothing to the table."""
    with fuzzed(deployed) as fuzzer:
        fuzzer.grounds.fresh_world()
        for text, status in BYTES:
            answer = fuzzer.send(Hostile("POST", TASKS, raw=text))
            assert answer is not None
            assert answer.status == status
        fuzzer.lay(REQUESTS)
    assert fuzzer.broken == []
    assert sum(fuzzer.answers.values()) == REQUESTS + len(BYTES)
