"""Entity tags, quoted, as RFC 9110 wants them: a task's version, or a version and a hash.

What is made of many records has no version of its own. Its tag is that of its main record, and a hash of all that is
answered: it changes whenever the answer does. Where only the main record is changed, its version is what counts.
"""

from __future__ import annotations

import hashlib
import re

from duetime.contract.http.request_errors import FaultCode, ParametersInvalid

NO_VERSION = 0
"""Stands for a tag that no task ever has: versions begin at 1."""
MAX_CONDITION_LENGTH = 1_024
_MOST_DIGITS = 15
_ENTITY_TAG = r'(?:W/)?"[!#-~\x80-\xff]*"'
IF_MATCH_PATTERN = rf"^[ \t]*(?:\*|{_ENTITY_TAG})[ \t]*$"
"""One tag, for a change is made for one version, or a star for any."""
IF_NONE_MATCH_PATTERN = rf"^[ \t]*(?:\*|{_ENTITY_TAG}(?:[ \t]*,[ \t]*{_ENTITY_TAG})*)[ \t]*$"
"""Tags with commas between them, or a star for any (Source: RFC 9110, 13.1.2)."""
_TAG = re.compile(r'(?P<weak>W/)?"(?P<text>[!#-~\x80-\xff]*)"')
_LIST = re.compile(IF_NONE_MATCH_PATTERN.removeprefix("^").removesuffix("$"))
_BLANKS = " \t"
_HASH_BYTES = 8
_VERSION_OF = re.compile(rf"(?P<version>[0-9]{{1,{_MOST_DIGITS}}})(-[0-9a-f]{{{2 * _HASH_BYTES}}})?")


def etag_of(version: int) -> str:
    """The tag of a task at a version: `"7"`."""
    return f'"{version}"'


def content_etag(version: int, text: str) -> str:
    """The tag of an answer that has more to it than the record at this version: `"7-5f0c2a9be1d34c77"`."""
    return f'"{version}-{hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()}"'


def version_wanted(if_match: str | None) -> int | None:
    """The version that `If-Match` asks for, of a tag with a hash too; `None` if any will do.

    Raises:
        ParametersInvalid: it is malformed, or names several tags.
    """
    if if_match is None or if_match.strip(_BLANKS) == "*":
        return None
    tags = _tags("If-Match", if_match)
    if len(tags) > 1:
        raise ParametersInvalid.of("If-Match", "names more than one version", FaultCode.DUPLICATE)
    weak, text = tags[0]
    # A weak tag says "about the same", which is not enough to change something by (RFC 9110, 13.1.1).
    # How that version was shown, as `content_etag` says, is of no concern to a change.
    match = _VERSION_OF.fullmatch(text)
    return NO_VERSION if weak or match is None else int(match["version"])


def is_known(if_none_match: str | None, version: int) -> bool:
    """Whether `If-None-Match` says that the caller has this version already.

    Raises:
        ParametersInvalid: it is malformed.
    """
    return is_known_tag(if_none_match, etag_of(version))


def is_known_tag(if_none_match: str | None, tag: str) -> bool:
    """Whether `If-None-Match` names this very tag.

    Raises:
        ParametersInvalid: it is malformed.
    """
    if if_none_match is None:
        return False
    if if_none_match.strip(_BLANKS) == "*":
        return True
    return any(f'"{text}"' == tag for _, text in _tags("If-None-Match", if_none_match))


def _tags(header: str, value: str) -> list[tuple[bool, str]]:
    if len(value) > MAX_CONDITION_LENGTH or _LIST.fullmatch(value) is None:
        raise ParametersInvalid.of(header, 'should be an entity tag such as "7"', FaultCode.PATTERN)
    # A comma may stand within a tag, too.
    return [(match["weak"] is not None, match["text"]) for match in _TAG.finditer(value)]
