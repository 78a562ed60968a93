"""Extracts facts about errors for logs: the location of duetime's own errors, and the traceback of a handler's errors.

These functions never raise, even if the error's class, which a user may have written, is broken.
"""

from __future__ import annotations

import re
import traceback
from pathlib import PurePath

from duetime.domain.json_values import writable
from duetime.domain.limits import MAX_LOGGED_TRACEBACK_LENGTH
from duetime_common.frozen_classes import frozen

_CLASS_NAME = type.__dict__["__name__"]
"""Python's own getter for a class's name, because a metaclass may override `__name__`."""
_LONGEST_SECRET = 40_000
"""Maximum combined length of a name and its secret that the patterns below match."""
_PLACES = 8
_CAUSES = 3
_CUT = "[cut] "
_GONE = "[redacted]"
_SECRETS = (
    # `password=...`, `"api_key": "..."`, `Authorization: Bearer ...`
    (
        re.compile(
            r"""((?:pass(?:word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization"""
            r"""|cookie|credentials?)[\w-]{0,32}["']?\s{0,4}[:=]\s{0,4})"""
            r"""("[^"\n]{0,4096}"|'[^'\n]{0,4096}'|(?:(?:bearer|basic)\s{1,4})?[^\s,;"')}\]&]{1,4096})""",
            re.IGNORECASE,
        ),
        rf"\1{_GONE}",
    ),
    (re.compile(r"\b(bearer|basic)\s{1,4}[\w.~+/=-]{8,4096}", re.IGNORECASE), rf"\1 {_GONE}"),
    # Passwords in URLs.
    (re.compile(r"(://[^\s/:@]{0,256}:)[^\s/@]{1,1024}@"), rf"\1{_GONE}@"),
    # AWS access keys, JSON web tokens, Standard Webhooks secrets, private keys.
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), _GONE),
    (re.compile(r"\beyJ[\w-]{8,4096}\.[\w-]{4,8192}\.[\w-]{0,4096}"), _GONE),
    (re.compile(r"\bwhsec_[\w+/=]{8,512}"), _GONE),
    (
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,16384}?-----END [A-Z ]{0,40}PRIVATE KEY-----"),
        _GONE,
    ),
)
"""Patterns of secrets; every repetition is bounded, so that matching is fast for any text."""


def class_name(error: BaseException) -> str:
    """Name of an error's class."""
    return str(_CLASS_NAME.__get__(type(error)))


def message_of(error: BaseException) -> str:
    """Text of an error's message, even if the class is broken."""
    try:
        return writable(str(error))
    except BaseException as defect:  # noqa: BLE001 - a message is its author's code, too
        return f"its message cannot be read: {class_name(defect)}"


def places_of(error: BaseException) -> str:
    """The class of an error and where the error was raised, innermost first, followed by its causes.

    Messages are left out because they may quote user data. Messages of AWS errors are included, because they contain
    the call and the reason for its rejection.
    """
    causes: list[str] = []
    cause: BaseException | None = error
    try:
        while cause is not None and len(causes) < _CAUSES:
            causes.append(_places(cause))
            cause = cause.__cause__ or cause.__context__
    except BaseException:  # noqa: BLE001 - as above
        causes.append(class_name(error))
    return "; caused by ".join(causes)


def _places(error: BaseException) -> str:
    message = f": {message_of(error)}" if "operation_name" in vars(error) else ""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [f"{PurePath(code.co_filename).name}:{line} in {code.co_name}" for code, line in reversed(frames)]
    return " < ".join([f"{class_name(error)}{message}", *places[:_PLACES]])


@frozen
class AttemptTraceback:
    """The traceback of a failed attempt.

    Attributes:
        fence: fence of the attempt.
        text: the traceback, truncated and without secrets.
    """

    fence: int
    text: str


def traceback_of(error: BaseException) -> str:
    """The traceback of a handler's error, including causes, without the frames that called the handler.

    Secrets are replaced. If the text is too long for a log, only its end, which contains the error, is kept.
    """
    try:
        from duetime_common.handler_frames import frames_of_handler  # noqa: PLC0415 - for failures only

        frames = frames_of_handler(error.__traceback__)
        text = writable("".join(traceback.TracebackException(type(error), error, frames).format()))
    except BaseException as defect:  # noqa: BLE001 - a class of errors may break whatever reads its attributes
        text = f"{places_of(error)}\nits traceback cannot be read: {class_name(defect)}\n"
    # Enough additional text is kept to find every secret together with its name.
    return last_part(redacted(text[-MAX_LOGGED_TRACEBACK_LENGTH - _LONGEST_SECRET :]), MAX_LOGGED_TRACEBACK_LENGTH)


def redacted(text: str) -> str:
    """Replaces secrets in a string, which are values with suspicious names, tokens, keys, and passwords in URLs."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def last_part(text: str, length: int) -> str:
    """A string; if it is longer than `length`, its start is replaced by a note."""
    return text if len(text) <= length else _CUT + text[len(text) - length + len(_CUT) :]
