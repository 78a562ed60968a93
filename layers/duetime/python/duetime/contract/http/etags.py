"""Entity tags, which are quoted as in RFC 9110 and contain a record's version, or a version and a hash.

A response composed of many records does not have a single version, so its tag consists of the main record's version and
a hash of the response. The tag therefore changes whenever the response changes. Requests that change only the main
record use just the version in the tag.
"""

from __future__ import annotations

import hashlib
import re

from duetime.contract.http.request_errors import FaultCode, ParametersInvalid

NO_VERSION = 0
"""Version returned for a tag that cannot match any task; real versions start at 1."""
MAX_CONDITION_LENGTH = 1_024
_MOST_DIGITS = 15
_ENTITY_TAG = r'(?:W/)?"[!#-~\x80-\xff]*"'
IF_MATCH_PATTERN = rf"^[ \t]*(?:\*|{_ENTITY_TAG})[ \t]*$"
"""Pattern of a single tag, or `*` for any version; a change applies to one version, so it cannot list several tags."""
IF_NONE_MATCH_PATTERN = rf"^[ \t]*(?:\*|{_ENTITY_TAG}(?:[ \t]*,[ \t]*{_ENTITY_TAG})*)[ \t]*$"
"""Pattern of comma-separated tags, or `*` for any tag (Source: RFC 9110, 13.1.2)."""
_TAG = re.compile(r'(?P<weak>W/)?"(?P<text>[!#-~\x80-\xff]*)"')
_LIST = re.compile(IF_NONE_MATCH_PATTERN.removeprefix("^").removesuffix("$"))
_BLANKS = " \t"
_HASH_BYTES = 8
_VERSION_OF = re.compile(rf"(?P<version>[0-9]{{1,{_MOST_DIGITS}}})(-[0-9a-f]{{{2 * _HASH_BYTES}}})?")


def etag_of(version: int) -> str:
    """The tag for a version, such as `"7"`."""
    return f'"{version}"'


def content_etag(version: int, text: str) -> str:
    """The tag of a response composed of more than the record at this version, such as `"7-5f0c2a9be1d34c77"`."""
    return f'"{version}-{hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()}"'


def version_wanted(if_match: str | None) -> int | None:
    """The version in `If-Match`, with or without a hash; `None` for any version.

    Raises:
        ParametersInvalid: the header is malformed, or has several tags.
    """
    if if_match is None or if_match.strip(_BLANKS) == "*":
        return None
    tags = _tags("If-Match", if_match)
    if len(tags) > 1:
        raise ParametersInvalid.of("If-Match", "names more than one version", FaultCode.DUPLICATE)
    weak, text = tags[0]
    # Weak tags stand for approximate equality, which is not sufficient for changes (RFC 9110, 13.1.1). When the
    # `If-Match` of a change is checked, the hash that `content_etag` adds is ignored.
    match = _VERSION_OF.fullmatch(text)
    return NO_VERSION if weak or match is None else int(match["version"])


def is_known(if_none_match: str | None, version: int) -> bool:
    """Whether `If-None-Match` shows that the caller already has this version.

    Raises:
        ParametersInvalid: the header is malformed.
    """
    return is_known_tag(if_none_match, etag_of(version))


def is_known_tag(if_none_match: str | None, tag: str) -> bool:
    """Whether `If-None-Match` contains this tag.

    Raises:
        ParametersInvalid: the header is malformed.
    """
    if if_none_match is None:
        return False
    if if_none_match.strip(_BLANKS) == "*":
        return True
    return any(f'"{text}"' == tag for _, text in _tags("If-None-Match", if_none_match))


def _tags(header: str, value: str) -> list[tuple[bool, str]]:
    if len(value) > MAX_CONDITION_LENGTH or _LIST.fullmatch(value) is None:
        raise ParametersInvalid.of(header, 'should be an entity tag such as "7"', FaultCode.PATTERN)
    # A tag can contain a comma.
    return [(match["weak"] is not None, match["text"]) for match in _TAG.finditer(value)]
