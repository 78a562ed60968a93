"""Celery's options and what takes their place, from the import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.sections.markdown import code, table
from duetime_client.importers.celery_options import CALL_OPTIONS, ENTRY_KEYS, SETTINGS, TASK_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping


def task_options() -> str:
    """The options of `@app.task`."""
    return _table("`@app.task`", TASK_OPTIONS)


def call_options() -> str:
    """The options of `apply_async` that are not options of `@app.task` with the same counterpart."""
    own = {name: text for name, text in CALL_OPTIONS.items() if TASK_OPTIONS.get(name) != text}
    return _table("`apply_async`", own)


def entry_keys() -> str:
    """The keys of an entry of `beat_schedule`."""
    return _table("`beat_schedule`", ENTRY_KEYS)


def settings() -> str:
    """The settings that concern running tasks."""
    return _table("`app.conf`", SETTINGS)


def _table(of: str, options: Mapping[str, str]) -> str:
    """One row for all options with the same counterpart; the import reports those without one, too."""
    names: dict[str, list[str]] = {}
    for name, text in options.items():
        if not text.startswith(("none", "always so")):
            names.setdefault(text, []).append(code(name))
    return table((of, "duetime"), [(", ".join(same), text) for text, same in names.items()])
