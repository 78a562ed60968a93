"""Prints the plan for a file of schedules, and the results of applying the file."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from duetime_client.commands.output_streams import console, printable
from duetime_client.errors import ApiError
from duetime_client.manifests.differences import TIMINGS, Action

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client.errors import ClientError
    from duetime_client.manifests.apply import Done
    from duetime_client.manifests.differences import Difference, Step

SIGNS = {Action.CREATE: ("+", "green"), Action.UPDATE: ("~", "yellow"), Action.DELETE: ("-", "red")}
DONE = {Action.CREATE: "created", Action.UPDATE: "updated", Action.DELETE: "deleted", Action.KEEP: "unchanged"}
_LONGEST_VALUE = 60


def show_plan(steps: Sequence[Step]) -> None:
    """Print a line for each changed schedule and field, and the number of changes."""
    out = console()
    for step in steps:
        for line in _lines(step):
            out.print(line, soft_wrap=True)
    counts = Counter(step.action for step in steps)
    words = [
        Text.assemble((f"{counts[Action.CREATE]} to create", "green" if counts[Action.CREATE] else "dim")),
        Text.assemble((f"{counts[Action.UPDATE]} to update", "yellow" if counts[Action.UPDATE] else "dim")),
        Text.assemble((f"{counts[Action.DELETE]} to delete", "red" if counts[Action.DELETE] else "dim")),
        Text(f"{counts[Action.KEEP]} unchanged", "dim"),
    ]
    if counts[Action.REJECT]:
        words.append(Text(f"{counts[Action.REJECT]} not valid", "bold red"))
    out.print(Text(", ").join(words))


def show_outcome(done: Sequence[Done], *, checked: bool, invalid: int = 0) -> None:
    """Print the results, and why the API rejected entries; the plan already shows why entries are not valid."""
    err = console(stderr=True)
    for each in done:
        if each.error is not None:
            err.print(_headline(each.step, each.error), soft_wrap=True)
            for line in _reasons(each.error):
                err.print(line, soft_wrap=True)
    counts = Counter(DONE[each.step.action] for each in done if each.error is None and each.tried)
    failed = invalid + sum(each.error is not None for each in done)
    left = sum(not each.tried for each in done)
    if checked:
        sums = [f"{sum(counts.values())} with a valid timing"]
    else:
        sums = [f"{counts[word]} {word}" for word in DONE.values() if counts[word]]
    sums += [f"{failed} rejected"] if failed else []
    sums += [f"{left} not tried: apply the file again"] if left else []
    err.print(", ".join(sums) or "nothing to do", style="bold red" if failed or left else "green")


def _lines(step: Step) -> Iterator[Text]:
    if step.action is Action.REJECT:
        yield Text.assemble(("! ", "bold red"), f"line {step.line}: ", printable(f"{step.name}: {step.fault}"[:200]))
        return
    if step.action not in SIGNS:
        return
    sign, style = SIGNS[step.action]
    yield Text.assemble((f"{sign} ", style), printable(step.name, style), "  ", printable(_timing(step), "dim"))
    for each in step.differences:
        yield Text.assemble("    ", printable(each.path), ": ", printable(_shown(each), ""))


def _timing(step: Step) -> str:
    """The timing of a schedule that will be created."""
    if step.action is not Action.CREATE:
        return ""
    return next((f"{name} {value}" for name in TIMINGS if (value := (step.fields or {}).get(name)) is not None), "")


def _shown(difference: Difference) -> str:
    return f"{_json(difference.before)} → {_json(difference.after)}"


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _headline(step: Step, error: ClientError) -> Text:
    where = f"line {step.line}, " if step.line else ""
    refused = error.problem.errors if isinstance(error, ApiError) else ()
    return Text.assemble(
        ("rejected: ", "bold red"), f"{where}", printable(step.name), "" if refused else printable(f": {error}")
    )


def _reasons(error: ClientError) -> Iterator[Text]:
    for field in error.problem.errors if isinstance(error, ApiError) else ():
        yield Text.assemble("  ", printable(field.field, "bold"), ": ", printable(field.reason))
