"""What a log may say of an error: of a defect of our own, where it was; of a handler's, its traceback."""

from __future__ import annotations

import traceback
from pathlib import PurePath

_PLACES = 8
_CAUSES = 3


def places_of(error: BaseException) -> str:
    """The class of an error and where it was raised, innermost first; then the same of its causes.

    Its message is left out, because it may quote what it could not digest; not that of an error of AWS, which says
    what was called and why it was refused.
    """
    told: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(told) < _CAUSES:
        told.append(_places(cause))
        cause = cause.__cause__ or cause.__context__
    return "; caused by ".join(told)


def _places(error: BaseException) -> str:
    message = f": {error}" if hasattr(error, "operation_name") else ""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [f"{PurePath(code.co_filename).name}:{line} in {code.co_name}" for code, line in reversed(frames)]
    return " < ".join([f"{type(error).__name__}{message}", *places[:_PLACES]])
