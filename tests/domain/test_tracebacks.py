from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from duetime.domain.tracebacks import last_part, places_of, redacted


def _raise(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as raised:
        return raised


def test_a_traceback_has_class_and_place_but_not_the_message() -> None:
    """A traceback has the error's class and place, but not its message, which may quote values."""
    told = places_of(_raise(ValueError("confidential")))
    assert told.startswith("ValueError < test_tracebacks.py:")
    assert " in _raise" in told
    assert "confidential" not in told


def test_at_most_two_causes_of_an_error_are_named() -> None:
    """At most two causes of an error are named."""
    error: BaseException = ValueError()
    for _ in range(10):
        outer = RuntimeError()
        outer.__cause__ = error
        error = outer
    assert places_of(error) == "RuntimeError; caused by RuntimeError; caused by RuntimeError"


def test_the_text_about_an_aws_error_names_the_action() -> None:
    """The description of an AWS error names the action, which is needed to correct a policy."""
    error = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "may not"}}, "PutItem")
    assert "AccessDeniedException" in places_of(error)
    assert "PutItem" in places_of(error)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("password=hunter2 next", "password=[redacted] next"),
        ("{'api_key': 'a b', 'n': 1}", "{'api_key': [redacted], 'n': 1}"),
        ('{"client_secret":"x\\"y"}', '{"client_secret":[redacted]y"}'),
        ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
        ("got bearer abcdefgh12", "got bearer [redacted]"),
        ("https://me:hunter2@example.org/x?token=abc&n=1", "https://me:[redacted]@example.org/x?token=[redacted]&n=1"),
        ("key AKIAIOSFODNN7EXAMPLE of", "key [redacted] of"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "jwt [redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "[redacted]"),
        ("KeyError: 'amount'", "KeyError: 'amount'"),
        ("https://example.org:8443/passes", "https://example.org:8443/passes"),
    ],
)
def test_a_likely_secret_is_replaced_but_its_name_stays(text: str, told: str) -> None:
    """A likely secret is replaced, but its name stays, so that readers know what was replaced."""
    assert redacted(text) == told


@pytest.mark.parametrize(
    "text", ["password=" * 20_000, "a" * 200_000, "://" * 50_000, "eyJ" * 60_000, "'token'" * 30_000]
)
def test_no_text_takes_long_to_redact(text: str) -> None:
    """Even a hostile string of two hundred thousand characters is redacted quickly."""
    assert len(redacted(text)) <= len(text) + len("[redacted]")


def test_a_long_text_is_truncated_to_its_end() -> None:
    """A long text is cut at its beginning to the allowed length, and says that it was cut."""
    assert last_part("abcdef", 6) == "abcdef"
    assert last_part("x" * 50 + "end", 12) == "[cut] xxxend"
    assert len(last_part("x" * 50, 1)) <= 6
