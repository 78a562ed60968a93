from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.writes import Guard
from duetime.services import changing
from duetime.services.steering import Steering
from tests.pairs.exploring import Exploration
from tests.pairs.interleaving import CallFault, Interleaving, run
from tests.pairs.parts import chosen, every_pair, interleaving_named
from tests.pairs.telling import told

if TYPE_CHECKING:
    from collections.abc import Iterator

HOLD = [
    "scheduled patch-at-05 cancel",
    "scheduled pause patch-name",
    "queued cancel worker",
    "queued worker run",
    "failed retry rollback",
    "leased lease-complete pause",
    "lock-leased lease-complete lease-heartbeat",
    "nothing create-keyed create-keyed-otherwise",
    "recurring pause patch-task",
    "topology-rerun topology-pause trigger",
]
"""Pairs of every kind of subject; the others are run by `make pairs`."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", HOLD)
def test_no_interleaving_of_a_pair_breaks_a_promise(name: str) -> None:
    """All ends are those of an order of the two, nothing accepted is lost, nothing refused has changed anything."""
    faults = () if name.startswith(("lock", "topology", "recurring")) else (CallFault.LOST,)
    exploration = Exploration(every_pair()[name], faults)
    assert [told(found) for found in exploration.found()] == []
    assert exploration.runs > 5


def test_a_change_that_does_not_ask_for_the_version_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of two changes of one version are accepted if the write does not name the version it read."""
    monkeypatch.setattr(changing, "Guard", lambda **how: replace(Guard(**how), version=None))
    found = list(Exploration(every_pair()["scheduled patch-matching-05 patch-matching-55"], ()).found())
    assert "no order of the two is answered accepted and accepted" in found[0].violations[0]
    assert "make pairs AGAIN='scheduled patch-matching-05 patch-matching-55 1 " in told(found[0])


def test_a_stop_that_is_accepted_and_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task is tried again when its lease is over: that is not what its user was told."""
    monkeypatch.setattr(Steering, "_ask", lambda _self, task, *_rest: task)
    found = list(Exploration(every_pair()["leased get cancel-by-force"], ()).found())
    assert any("a stop was accepted, and the task is succeeded" in each for each in found[0].violations)


def test_an_interleaving_is_the_same_each_time() -> None:
    """Its name alone decides which calls are made, when, and how it ends."""
    name = "queued worker pause 2 1 late"
    one, other = interleaving_named(name), interleaving_named(name)
    assert str(one.interleaving) == name
    assert one.result.made == other.result.made
    assert one.result.state == other.result.state
    assert {actor for _, actor, _ in one.result.made} == {"A", "B"}


def test_the_first_stops_before_its_call_and_the_second_before_its_own() -> None:
    """A makes one call, B one, then A the others, then B the others."""
    pair = every_pair()["scheduled patch-at-05 patch-at-55"]
    result = run(Interleaving(pair, 1, 1))
    assert re.fullmatch("A(A?)B(B?)A+B+", "".join(actor for _, actor, _ in result.made))
    assert result.reached == (True, True)


def test_a_subject_starts_the_same_for_everybody() -> None:
    """One run leaves nothing behind for the next one."""
    pair = every_pair()["failed retry get"]
    before = run(Interleaving(pair, runs=(False, False))).state
    run(Interleaving(pair))
    assert run(Interleaving(pair, runs=(False, False))).state == before


def test_each_pair_is_in_one_part() -> None:
    """Ten parts are all pairs, each once, and none is much larger than another."""
    parts = [chosen(number, 10) for number in range(1, 11)]
    assert sorted(name for part in parts for name in part) == sorted(every_pair())
    assert max(map(len, parts)) < 1.15 * min(map(len, parts))
