"""What a log may say of an error: of a defect of our own, where it was; of a handler's, its traceback.

An error may be of a class that a user wrote: none of these functions raises, whatever that class does when it is asked.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import PurePath

from duetime.domain.json_values import writable
from duetime.domain.limits import MAX_LOGGED_TRACEBACK_LENGTH

_CLASS_NAME = type.__dict__["__name__"]
"""The name that Python itself has of a class: a metaclass may answer anything."""
_LONGEST_SECRET = 40_000
"""Characters that a secret and its name have at most, as the patterns below find it."""
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
    # Password in a URL.
    (re.compile(r"(://[^\s/:@]{0,256}:)[^\s/@]{1,1024}@"), rf"\1{_GONE}@"),
    # Access keys of AWS, JSON web tokens, secrets of Standard Webhooks, private keys.
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), _GONE),
    (re.compile(r"\beyJ[\w-]{8,4096}\.[\w-]{4,8192}\.[\w-]{0,4096}"), _GONE),
    (re.compile(r"\bwhsec_[\w+/=]{8,512}"), _GONE),
    (
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,16384}?-----END [A-Z ]{0,40}PRIVATE KEY-----"),
        _GONE,
    ),
)
"""What looks like a secret; every repetition is bounded, so that no text takes long."""


def class_name(error: BaseException) -> str:
    """The name of an error's class."""
    return str(_CLASS_NAME.__get__(type(error)))


def message_of(error: BaseException) -> str:
    """What an error says of itself, whatever that is."""
    try:
        return writable(str(error))
    except BaseException as defect:  # noqa: BLE001 - a message is its author's code, too
        return f"its message cannot be read: {class_name(defect)}"


def places_of(error: BaseException) -> str:
    """The class of an error and where it was raised, innermost first; then the same of its causes.

    Its message is left out, because it may quote what it could not digest; not that of an error of AWS, which says
    what was called and why it was refused.
    """
    told: list[str] = []
    cause: BaseException | None = error
    try:
        while cause is not None and len(told) < _CAUSES:
            told.append(_places(cause))
            cause = cause.__cause__ or cause.__context__
    except BaseException:  # noqa: BLE001 - as above
        told.append(class_name(error))
    return "; caused by ".join(told)


def _places(error: BaseException) -> str:
    message = f": {message_of(error)}" if "operation_name" in vars(error) else ""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [f"{PurePath(code.co_filename).name}:{line} in {code.co_name}" for code, line in reversed(frames)]
    return " < ".join([f"{class_name(error)}{message}", *places[:_PLACES]])


@dataclass(frozen=True, slots=True)
class AttemptTraceback:
    """The traceback of an attempt that failed.

    Attributes:
        fence: the attempt's.
        text: the traceback, cut and without secrets.
    """

    fence: int
    text: str


def traceback_of(error: BaseException) -> str:
    """The traceback of what a handler raised, causes included, without the frame that called the handler.

    What looks like a secret is replaced; of a text that no log takes, the end is left, which says what was raised.
    """
    try:
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        text = writable("".join(traceback.TracebackException(type(error), error, frames).format()))
    except BaseException as defect:  # noqa: BLE001 - a class of errors may break whatever reads its attributes
        text = f"{places_of(error)}\nits traceback cannot be read: {class_name(defect)}\n"
    # So much more than is left that no secret loses its name before it is found.
    return last_part(redacted(text[-MAX_LOGGED_TRACEBACK_LENGTH - _LONGEST_SECRET :]), MAX_LOGGED_TRACEBACK_LENGTH)


def redacted(text: str) -> str:
    """A text without what looks like a secret: values of tell-tale names, tokens, keys, passwords in URLs."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def last_part(text: str, length: int) -> str:
    """The end of a text that is longer, and says so."""
    return text if len(text) <= length else _CUT + text[len(text) - length + len(_CUT) :]
