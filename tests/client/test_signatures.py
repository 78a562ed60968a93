"""Tests that receivers can verify calls with the client, using calls from the real signer."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from duetime.adapters.targets.signing import Signer
from duetime_client.signatures import CallVerifier, KeyInvalid, SignatureInvalid
from duetime_common.signing_keys import SigningKeys
from tests.clocks import StandingClock

DEPLOYMENT = "T2xk" * 16
URL = "https://example.org/report"
BODY = json.dumps({"owner": "ann", "audience": URL, "task_id": "t"}).encode()
CLOCK = StandingClock()
SIGNER = Signer(lambda: SigningKeys.parse(DEPLOYMENT).rotated("TmV3" * 16, CLOCK.now()), CLOCK)
CURRENT, FORMER = SIGNER.secrets_of("ann")
BOB = SIGNER.secrets_of("bob")[0]
HEADERS = dict(SIGNER.headers("ann", "id-1", BODY))
SIGNATURES = HEADERS["webhook-signature"].split(" ")


def verifier(*keys: str, **expected: Any) -> CallVerifier:  # noqa: ANN401 - the verifier's fields
    """Return a verifier whose clock shows the time at which the calls were signed."""
    return CallVerifier(keys, now=lambda: CLOCK.now() / 1_000, **expected)


@pytest.mark.parametrize("key", [CURRENT.secret, FORMER.secret, CURRENT.public_key, FORMER.public_key])
def test_a_call_verifies_with_each_current_or_previous_key(key: str) -> None:
    """A call verifies with a current or previous secret or public key, even if keys of other owners are configured."""
    assert verifier(key).verify(HEADERS, BODY)["task_id"] == "t"
    assert verifier(BOB.secret, key, owner="ann", audience=URL).verify(
        {name.title(): value for name, value in HEADERS.items()}, BODY
    )


@pytest.mark.parametrize("key", [BOB.secret, BOB.public_key, f"whsec_{DEPLOYMENT}"])
def test_a_call_for_another_owner_does_not_verify(key: str) -> None:
    """A call that was signed for another owner does not verify, even with the deployment's key."""
    with pytest.raises(SignatureInvalid):
        verifier(key).verify(HEADERS, BODY)


@pytest.mark.parametrize("key", [CURRENT.secret, CURRENT.public_key])
@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "id-2"},
        {"webhook-timestamp": str(CLOCK.now() // 1_000 + 1)},
        {"webhook-timestamp": "9" * 5_000},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": ""},
        {"webhook-signature": ""},
        {"webhook-signature": "v1 v1, ,x v1a, v2,x v1,\u00e9"},
        {"webhook-signature": " ".join(each.replace("v1a,", "v1,") for each in SIGNATURES[2:])},
        {"webhook-signature": " ".join(each.replace("v1,", "v1a,") for each in SIGNATURES[:2])},
        {"webhook-signature": " ".join(["v1,eA=="] * 20 + SIGNATURES)},
    ],
)
def test_a_changed_header_does_not_verify(key: str, changed: dict[str, str]) -> None:
    """The id, time and signature kind are signed; if there are many signatures, only the first few are examined."""
    with pytest.raises(SignatureInvalid):
        verifier(key).verify(HEADERS | changed, BODY)


def test_a_changed_body_and_an_unsigned_call_do_not_verify() -> None:
    """Even one additional space invalidates the signature."""
    for headers, body in ((HEADERS, BODY + b" "), (HEADERS, b""), ({}, BODY)):
        with pytest.raises(SignatureInvalid):
            verifier(CURRENT.public_key).verify(headers, body)


@pytest.mark.parametrize("seconds", [-301, 301])
def test_an_old_call_does_not_verify(seconds: int) -> None:
    """A call that is more than five minutes old or from the future does not verify."""
    late = CallVerifier((CURRENT.secret,), now=lambda: CLOCK.now() // 1_000 + seconds)
    with pytest.raises(SignatureInvalid, match="five minutes"):
        late.verify(HEADERS, BODY)


def test_owner_and_audience_are_compared_with_the_signed_body() -> None:
    """A call for another of the owner's endpoints is refused; a status query has no body that could be compared."""
    for expected in ({"owner": "bob"}, {"audience": "https://example.org/other"}):
        with pytest.raises(SignatureInvalid, match="another"):
            verifier(CURRENT.secret, **expected).verify(HEADERS, BODY)
    empty = dict(SIGNER.headers("ann", "id-1", b""))
    assert verifier(CURRENT.secret, owner="ann", audience=URL).verify(empty, b"") is None


@pytest.mark.parametrize(
    "keys",
    [
        (),
        CURRENT.secret,
        ("",),
        ("whsec_",),
        ("whsk_" + base64.b64encode(bytes(32)).decode(),),
        ("whpk_" + base64.b64encode(bytes(31)).decode(),),
        ("whpk_\u00e9",),
        (DEPLOYMENT,),
    ],
)
def test_an_invalid_key_raises_an_error_when_the_verifier_is_created(keys: Any) -> None:  # noqa: ANN401 - any value that a caller passes
    """An invalid key raises an error when the verifier is created, so that it is not mistaken for a forged call."""
    with pytest.raises(KeyInvalid):
        CallVerifier(keys)
