"""Generates the table of task states, and the diagram of the moves between the states."""

from __future__ import annotations

import inspect

from docs.sections.markdown import code, table
from duetime.contract.openapi.descriptions import parts_of
from duetime.domain.tasks.states import LEASED, LEGAL, NOT_STARTED, STARTABLE, TERMINAL, State

_FIRST_DESIGN = {
    State.BLOCKED: "Init",
    State.SCHEDULED: "Create",
    State.PREPARING: "Prepare",
    State.RUNNING: "Running",
    State.WAITING: "Postpose",
    State.PAUSED: "Pause",
    State.SUCCEEDED: "Success, then Finish",
    State.FAILED: "Fail, then Finish",
    State.ROLLING_BACK: "Rollback",
    State.ROLLED_BACK: "Rollback",
    State.CANCELLED: "None",
}
_GROUPS = ((STARTABLE, "waiting"), (LEASED, "leased"), (TERMINAL, "terminal"))


def reached() -> frozenset[State]:
    """Return the states that a task can reach from its first state, which is scheduled or, for a node, blocked."""
    found = {State.SCHEDULED, State.BLOCKED}
    while True:
        further = {rule.to for rule in LEGAL.values() if rule.to and rule.sources & found} - found
        if not further:
            return frozenset(found)
        found |= further


def state_table() -> str:
    """Return a table of the states with their meanings."""
    _, meanings = parts_of(inspect.getdoc(State) or "")
    rows = []
    for state in State:
        group = next((name for group, name in _GROUPS if state in group), "held")
        rows.append((code(state), _sentence(meanings[state.name]), group))
    return table(("state", "meaning", "kind"), rows)


def first_design_states() -> str:
    """List, for each state, the word that the project's first design used."""
    return "; ".join(f"*{_FIRST_DESIGN[state]}*: {code(state)}" for state in State)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def picture() -> str:
    """Return a Mermaid diagram of the moves between reachable states."""
    alive = reached()
    steps: dict[tuple[State, State], list[str]] = {}
    for move, rule in LEGAL.items():
        for state in State:
            if state in rule.sources & alive and rule.to and rule.to != state:
                steps.setdefault((state, rule.to), []).append(move)
    lines = [f"    {one} --> {other}: {', '.join(moves)}" for (one, other), moves in steps.items()]
    ends = [f"    {state} --> [*]" for state in State if state in TERMINAL & alive]
    return "\n".join(
        [
            "```mermaid",
            "stateDiagram-v2",
            "    [*] --> scheduled: create",
            "    [*] --> blocked: plan",
            *lines,
            *ends,
            "```",
        ]
    )


def changeable() -> str:
    """List the states in which a client can still change or cancel a task."""
    return ", ".join(code(state) for state in State if state in NOT_STARTED)
