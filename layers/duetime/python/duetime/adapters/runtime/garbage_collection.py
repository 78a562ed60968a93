"""When Python's garbage collector runs: hardly while a function is imported, as usual from its first invocation on.

An import makes some hundred thousand objects and leaves almost no garbage, but the collector goes through them again
and again, which is a tenth to a fifth of a start. What was imported lives as long as the process: the collector is
told so before it goes on, or else the first request would wait for it.
"""

from __future__ import annotations

import gc

STARTING = 200_000
"""Objects made, and not freed, before the collector runs: more than any function's import makes."""
_USUAL = gc.get_threshold()


def postpone() -> None:
    """Let the collector rest while modules are imported."""
    gc.set_threshold(STARTING)


def resume() -> None:
    """Have the collector run as usual, and never again look at what was imported; the second time, do nothing."""
    if gc.get_threshold()[0] == STARTING:
        gc.freeze()
        gc.set_threshold(*_USUAL)
