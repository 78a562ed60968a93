"""Finds the frames of a traceback that belong to a handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_CALLERS = ("duetime.handlers.", "duetime_client.", "asyncio.")
"""Name prefixes of modules that call handlers."""


def frames_of_handler(frames: TracebackType | None) -> TracebackType | None:
    """A traceback's frames after the first frame, without leading frames of duetime and the event loop.

    The last frame is kept, unless it is the first frame.
    """
    frames = frames.tb_next if frames else None
    while frames and frames.tb_next and frames.tb_frame.f_globals.get("__name__", "").startswith(_CALLERS):
        frames = frames.tb_next
    return frames
