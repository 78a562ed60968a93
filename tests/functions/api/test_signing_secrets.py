from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import DAY, to_iso
from duetime.environment_variables import Variable
from duetime_common.signing_keys import SigningKeys
from tests.adapters.targets.receiver import public_key_for, secret_for
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

SECRET = "c2VjcmV0" * 8
OTHER = "b3RoZXIh" * 8
PATH = "/v1/signing-secrets"
KEYS = "/v1/signing-keys"


def test_an_owner_reads_its_own_secret(api: Gateway) -> None:
    """Each owner reads its own secret, which is derived from the deployment's secret and differs from other owners'."""
    Stack.faked({Variable.SIGNING_SECRET: "signing", Variable.EGRESS_FUNCTION: "egress"}, {"signing": SECRET})
    found = {
        owner: replace(api, headers={"X-Duetime-Owner": owner}).send("GET", PATH).body["secrets"]
        for owner in ("ann", "bob")
    }
    assert found == {
        owner: [
            {
                "secret": secret_for(owner, SECRET),
                "public_key": public_key_for(owner, SECRET),
                "is_current": True,
            }
        ]
        for owner in ("ann", "bob")
    }
    assert found["ann"] != found["bob"]


def test_anyone_reads_the_public_keys_of_an_owner(api: Gateway) -> None:
    """Anyone can read an owner's two public keys and the time of the next rotation, but no secret."""
    now = Stack.faked().clock.now()
    keys = SigningKeys.parse(SECRET).rotated(OTHER, now, days=30)
    Stack.faked({Variable.SIGNING_SECRET: "signing", Variable.AUTHENTICATION: "iam"}, {"signing": keys.text})
    found = api.send("GET", KEYS, query="owner=123456789012:role/Ann")
    owner = "123456789012:role/Ann"
    assert found.body == {
        "owner": owner,
        "keys": [
            {"public_key": public_key_for(owner, OTHER), "is_current": True},
            {"public_key": public_key_for(owner, SECRET), "is_current": False},
        ],
        "rotates_at": to_iso(now + 30 * DAY),
    }
    assert "whsec_" not in found.text
    assert api.send("GET", PATH).status == 401


@pytest.mark.parametrize("query", ["", "owner=", "owner=a%20b", "owner=a%23b", f"owner={'a' * 257}", "owner=a&all=1"])
def test_a_request_for_public_keys_of_an_invalid_owner_is_rejected(api: Gateway, query: str) -> None:
    """A request for the public keys of an invalid owner is refused, and the error names the parameter."""
    refused = api.send("GET", KEYS, query=query)
    assert refused.status == 400
    assert refused.problem["errors"][0]["field"] in {"owner", "all"}


def test_secrets_and_public_keys_are_empty_without_a_signing_secret(api: Gateway) -> None:
    """If the deployment has no signing secret, the lists of secrets and public keys are empty."""
    assert api.send("GET", PATH).body == {"secrets": [], "rotates_at": None}
    assert api.send("GET", KEYS, query="owner=ann").body == {"owner": "ann", "keys": [], "rotates_at": None}


def test_an_unreadable_signing_secret_returns_503(api: Gateway) -> None:
    """If the signing secret cannot be read, the response has status 503, as for every temporary AWS error."""
    Stack.faked({Variable.SIGNING_SECRET: "gone"}, {"signing": SECRET})
    assert api.send("GET", PATH).status == 503
