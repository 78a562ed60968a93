from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.contract.http.etags import (
    IF_MATCH_PATTERN,
    IF_NONE_MATCH_PATTERN,
    NO_VERSION,
    content_etag,
    etag_of,
    is_known,
    is_known_tag,
    version_wanted,
)
from duetime.contract.http.request_errors import ParametersInvalid
from tests.contract.properties import unhurried

LATIN = st.characters(max_codepoint=0xFF)
"""Characters that a header can contain."""


@unhurried
@given(st.integers(1, 10**14))
def test_an_etag_matches_only_its_version(version: int) -> None:
    """An ETag for a version matches only this version."""
    assert version_wanted(etag_of(version)) == version
    assert is_known(etag_of(version), version)
    assert not is_known(etag_of(version), version + 1)


@pytest.mark.parametrize("value", [None, "*", " * "])
def test_without_if_match_any_version_matches(value: str | None) -> None:
    """Without an `If-Match` header, or with `*`, any version matches."""
    assert version_wanted(value) is None


@pytest.mark.parametrize("value", ['W/"7"', '"abc"', '""', '"-7"', '"7.0"', '"' + "9" * 1_000 + '"'])
def test_a_weak_or_foreign_etag_matches_no_version(value: str) -> None:
    """A weak or foreign ETag is well-formed, but matches no version of any task."""
    assert version_wanted(value) == NO_VERSION


@unhurried
@given(st.integers(1, 10**14), st.text(), st.text())
def test_an_etag_with_a_hash_contains_version_and_hash(version: int, text: str, other: str) -> None:
    """An update matches only the version in an ETag with a hash, but a cached response must also match the hash."""
    tag = content_etag(version, text)
    assert version_wanted(tag) == version
    assert is_known_tag(f'"0", {tag}', tag)
    assert is_known_tag(content_etag(version, other), tag) == (other == text)
    assert not is_known_tag(etag_of(version), tag)
    assert not is_known_tag(None, tag)


def test_if_none_match_accepts_several_and_weak_etags() -> None:
    """`If-None-Match` accepts several ETags, weak ETags, and `*` for any version."""
    assert is_known('"5", W/"7"', 7)
    assert is_known("*", 7)
    assert not is_known('"5","6"', 7)
    assert not is_known(None, 7)


@pytest.mark.parametrize(
    "value", ["", "7", "'7'", '"7', 'w/"7"', '"7" "8"', ",", '"7",', '"\x00"', '"' + "9" * 5_000 + '"']
)
def test_a_malformed_etag_header_is_rejected_with_its_name(value: str) -> None:
    """If a list of ETags is invalid, the error names the header."""
    with pytest.raises(ParametersInvalid, match="If-Match"):
        version_wanted(value)
    with pytest.raises(ParametersInvalid, match="If-None-Match"):
        is_known(value, 7)


def test_if_match_with_several_etags_is_rejected() -> None:
    """`If-Match` with several ETags is refused, because an update applies to one version."""
    with pytest.raises(ParametersInvalid, match="more than one"):
        version_wanted('"7", "8"')


@unhurried
@given(st.text())
def test_any_header_value_is_parsed_or_rejected(value: str) -> None:
    """Any header value is either parsed or refused with the documented error."""
    for read in (version_wanted, lambda header: is_known(header, 7)):
        with suppress(ParametersInvalid):
            read(value)


def test_caching_compares_the_hash_of_an_etag_and_updates_only_the_version() -> None:
    """A cached response must have the same hash, but for an update only the version is compared."""
    tag, other = content_etag(7, "one"), content_etag(7, "two")
    assert tag != other
    assert tag.startswith('"7-')
    assert is_known_tag(f'"1", W/{tag}', tag)
    assert is_known_tag("*", tag)
    assert not is_known_tag(other, tag)
    assert not is_known_tag('"7"', tag)
    assert not is_known_tag(None, tag)
    assert version_wanted(tag) == 7
    assert version_wanted(f"W/{tag}") == NO_VERSION
    assert version_wanted('"7-what"') == NO_VERSION
    with pytest.raises(ParametersInvalid):
        is_known_tag("7", tag)


@unhurried
@given(st.from_regex(IF_MATCH_PATTERN, alphabet=LATIN), st.from_regex(IF_NONE_MATCH_PATTERN, alphabet=LATIN))
def test_header_values_that_fit_the_documented_patterns_are_accepted(if_match: str, if_none_match: str) -> None:
    """A header's value that fits the header's documented pattern is not refused as malformed."""
    version_wanted(if_match.removesuffix("\n"))
    is_known(if_none_match.removesuffix("\n"), 7)


@unhurried
@given(st.one_of(st.text(alphabet='"W/*,7 a\t', max_size=12), st.text(alphabet=LATIN, max_size=6)))
def test_header_values_that_do_not_fit_the_documented_patterns_are_rejected(value: str) -> None:
    """A header's value is refused if, and only if, the value does not fit the header's documented pattern."""
    for pattern, read in ((IF_MATCH_PATTERN, version_wanted), (IF_NONE_MATCH_PATTERN, lambda text: is_known(text, 7))):
        fits = re.fullmatch(pattern.removeprefix("^").removesuffix("$"), value) is not None
        refused = False
        try:
            read(value)
        except ParametersInvalid:
            refused = True
        assert refused != fits


def test_an_etag_can_contain_a_comma() -> None:
    """An ETag can contain any visible character except a quotation mark (RFC 9110, 8.8.3)."""
    assert is_known_tag('"a,b"', '"a,b"')
    assert not is_known_tag('"a","b"', '"a,b"')
    assert version_wanted('"7,8"') == NO_VERSION
