"""Makes Python's garbage collector run rarely during a function's imports, and normally from the first invocation on.

Imports create about a hundred thousand objects and almost no garbage, but the collector scans them repeatedly, which
takes a tenth to a fifth of the start time. Imported objects live as long as the process, so they are frozen before the
collector resumes. Otherwise, the first request would wait while the collector scans these objects.
"""

from __future__ import annotations

import gc

STARTING = 200_000
"""Number of allocations before the collector runs, which exceeds the allocations of any function's imports."""
_USUAL = gc.get_threshold()


def postpone() -> None:
    """Keep the collector from running during imports."""
    gc.set_threshold(STARTING)


def resume() -> None:
    """Let the collector run normally without scanning imported objects. A second call does nothing."""
    if gc.get_threshold()[0] == STARTING:
        gc.freeze()
        gc.set_threshold(*_USUAL)
