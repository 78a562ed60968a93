"""Generates the price table, and tables of what a million tasks and a month cost in the default deployment."""

from __future__ import annotations

from dataclasses import replace

from docs.sections.markdown import table
from duetime_common.cost_estimate import FULL_BATCHES, THIN_TRAFFIC, estimate, watched_month
from duetime_common.prices import MILLION, PRICES

_UNITS = {
    "write_unit": ("DynamoDB on demand, a million write units", MILLION),
    "read_unit": ("DynamoDB on demand, a million read units", MILLION),
    "queue_request": ("SQS, standard queue, a million requests", MILLION),
    "function_request": ("Lambda, a million requests", MILLION),
    "gigabyte_second": ("Lambda, arm64, 100,000 GB-seconds", 100_000),
    "api_request": ("API Gateway, HTTP API, a million requests", MILLION),
    "scheduler_invocation": ("EventBridge Scheduler, a million invocations", MILLION),
    "trace": ("X-Ray, a million traces recorded", MILLION),
    "log_gigabyte": ("CloudWatch Logs, a gigabyte written", 1),
    "state_transition": ("Step Functions, standard, a million state transitions", MILLION),
}
"""What each price is for, and the quantity for which the table shows the price."""


def price_table() -> str:
    """Return a table with a row for each price and a column for each Region."""
    rows = [
        (text, *(f"${getattr(prices, name) * number:.4g}" for prices in PRICES.values()))
        for name, (text, number) in _UNITS.items()
    ]
    return table(("price for", *PRICES), rows)


def default_bill() -> str:
    """Return a table of what a million tasks cost in the default deployment, by part, for sparse and dense traffic."""
    thin, full = estimate(THIN_TRAFFIC), estimate(FULL_BATCHES)
    rows = [
        (one.part, one.use, f"{one.dollars:.2f}", f"{other.dollars:.2f}")
        for one, other in zip(thin.lines, full.lines, strict=True)
    ]
    total = ("**a million tasks**", "", f"**{thin.per_million:.2f}**", f"**{full.per_million:.2f}**")
    return table(("part", "use, each created and due alone", "dollars", "dollars in full batches"), [*rows, total])


def month_table() -> str:
    """Return a table of what a month costs in the default deployment, with a row for each number of tasks."""
    rows = []
    for tasks in _MONTHS:
        thin, full = (estimate(replace(each, tasks=tasks)).dollars for each in (THIN_TRAFFIC, FULL_BATCHES))
        rows.append((f"{tasks:,}", _dollars(thin), _dollars(full)))
    watched = f"In `prod`, alarms, metrics, logs and a secret are {_dollars(watched_month())} more."
    return f"{table(('tasks a month', 'each created and due alone', 'in full batches'), rows)}\n\n{watched}"


def _dollars(amount: float) -> str:
    return f"${amount:,.0f}" if amount >= _ROUND else f"${amount:.2f}"


_MONTHS = (0, 10_000, MILLION, 100 * MILLION)
_ROUND = 100
"""Dollar amounts of at least this value are shown without cents."""
