"""Generates tables of Celery's options and their duetime counterparts from the data that the import command uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.sections.markdown import code, table
from duetime_client.importers.celery_options import CALL_OPTIONS, ENTRY_KEYS, SETTINGS, TASK_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping


def task_options() -> str:
    """Return a table of the options for `@app.task`."""
    return _table("`@app.task`", TASK_OPTIONS)


def call_options() -> str:
    """Return a table of the options for `apply_async`, except those with the same counterpart as in `@app.task`."""
    own = {name: text for name, text in CALL_OPTIONS.items() if TASK_OPTIONS.get(name) != text}
    return _table("`apply_async`", own)


def entry_keys() -> str:
    """Return a table of the keys in a `beat_schedule` entry."""
    return _table("`beat_schedule`", ENTRY_KEYS)


def settings() -> str:
    """Return a table of the Celery settings that affect how tasks run."""
    return _table("`app.conf`", SETTINGS)


def _table(of: str, options: Mapping[str, str]) -> str:
    """Return a table with one row for each counterpart, which lists all options that have this counterpart.

    Options without a counterpart are left out, because the import command reports them.
    """
    names: dict[str, list[str]] = {}
    for name, text in options.items():
        if not text.startswith(("none", "always so")):
            names.setdefault(text, []).append(code(name))
    return table((of, "duetime"), [(", ".join(same), text) for text, same in names.items()])
