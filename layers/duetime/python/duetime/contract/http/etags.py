"""Entity tags: a task's version, quoted, as RFC 9110 wants it."""

from __future__ import annotations

import re

from duetime.contract.http.request_errors import ParametersInvalid

NO_VERSION = 0
"""Stands for a tag that no task ever has: versions begin at 1."""
_MOST_DIGITS = 15
_TAG = re.compile(r'(?P<weak>W/)?"(?P<text>[!#-~\x80-\xff]*)"')
_LONGEST = 1_024


def etag_of(version: int) -> str:
    """The tag of a task at a version: `"7"`."""
    return f'"{version}"'


def version_wanted(if_match: str | None) -> int | None:
    """The version that `If-Match` asks for; `None` if any will do.

    Raises:
        ParametersInvalid: it is malformed, or names several tags.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    tags = _tags("If-Match", if_match)
    if len(tags) > 1:
        raise ParametersInvalid.of("If-Match", "names more than one version")
    weak, text = tags[0]
    # A weak tag says "about the same", which is not enough to change something by (RFC 9110, 13.1.1).
    return NO_VERSION if weak else _version(text)


def is_known(if_none_match: str | None, version: int) -> bool:
    """Whether `If-None-Match` says that the caller has this version already.

    Raises:
        ParametersInvalid: it is malformed.
    """
    return is_known_tag(if_none_match, str(version))


def is_known_tag(if_none_match: str | None, known: str) -> bool:
    """Whether `If-None-Match` names a tag, given by the text between its quotes.

    Raises:
        ParametersInvalid: it is malformed.
    """
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    return any(text == known for _, text in _tags("If-None-Match", if_none_match))


def _tags(header: str, value: str) -> list[tuple[bool, str]]:
    matches = [_TAG.fullmatch(part.strip()) for part in value[:_LONGEST].split(",")]
    tags = [(match["weak"] is not None, match["text"]) for match in matches if match is not None]
    if len(tags) != len(matches) or len(value) > _LONGEST:
        raise ParametersInvalid.of(header, 'should be an entity tag such as "7"')
    return tags


def _version(text: str) -> int:
    is_version = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_version else NO_VERSION
