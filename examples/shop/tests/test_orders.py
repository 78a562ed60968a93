"""Tests of orders, whose steps must either all be done or all be undone."""

from __future__ import annotations

from typing import Any

import pytest
from duetime_testing import Duetime

from shop.services import BANK, WAREHOUSE
from website import place_order

CALLBACK = "https://shop.example.org/callbacks"


@pytest.fixture(autouse=True)
def _stock(duetime: Duetime) -> None:
    WAREHOUSE.stock["kettle"] = 3
    duetime.http.respond(CALLBACK)


def order(**changes: Any) -> dict[str, Any]:
    """Return an order of two kettles."""
    return {"order": "4711", "article": "kettle", "number": 2, "amount": 50, "address": "1 High Street", **changes}


def end_of(duetime: Duetime, order: dict[str, Any]) -> str:
    """Place an order, and return its final state."""
    topology = place_order(duetime.client, order, CALLBACK)
    duetime.run_until_idle()
    return str(duetime.client.tasks.get(topology).state)


def test_an_order_is_charged_and_shipped(duetime: Duetime) -> None:
    """Each step of an order runs once, and the web site is notified of the success."""
    assert end_of(duetime, order()) == "succeeded"
    for step in ("order.reserve", "order.charge", "order.ship"):
        duetime.assert_ran(step, times=1)
    assert (WAREHOUSE.stock["kettle"], BANK.balance, WAREHOUSE.shipped) == (1, 50, {"4711"})
    assert duetime.http.requests[-1].json["type"] == "task.succeeded"


@pytest.mark.parametrize("problem", [{"amount": 5000}, {"address": ""}, {"number": 4}])
def test_a_step_that_fails_undoes_those_before_it(duetime: Duetime, problem: dict[str, Any]) -> None:
    """An order with a declined card, a missing address or too little stock leaves no charge and no reservation."""
    assert end_of(duetime, order(**problem)) == "failed"
    assert (WAREHOUSE.stock["kettle"], BANK.balance, WAREHOUSE.shipped) == (3, 0, set())


def test_an_order_that_is_sent_twice_is_one(duetime: Duetime) -> None:
    """A repeated request for the same order returns the same topology and charges the customer only once."""
    first = place_order(duetime.client, order(), CALLBACK)
    assert place_order(duetime.client, order(), CALLBACK) == first
    duetime.run_until_idle()
    assert BANK.balance == 50


@pytest.mark.parametrize("fault", ["crash_before_finish", "lose_lease"])
def test_a_worker_that_is_lost_charges_nobody_twice(duetime: Duetime, fault: str) -> None:
    """If a worker crashes or loses its lease after charging, the order still succeeds and is charged only once."""
    getattr(duetime.faults, fault)(type="order.charge")
    assert end_of(duetime, order()) == "succeeded"
    assert BANK.balance == 50
