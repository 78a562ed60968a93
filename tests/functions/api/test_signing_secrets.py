from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.environment_variables import Variable
from tests.adapters.targets.receiver import secret_for
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

SECRET = "c2VjcmV0" * 8
PATH = "/v1/signing-secrets"


def test_an_owner_reads_its_own_secret(api: Gateway) -> None:
    """Derived from that of the deployment; another owner has another."""
    Stack.faked({Variable.SIGNING_SECRET: "signing", Variable.EGRESS_FUNCTION: "egress"}, {"signing": SECRET})
    found = {
        owner: replace(api, headers={"X-Duetime-Owner": owner}).send("GET", PATH).body["secrets"]
        for owner in ("ann", "bob")
    }
    assert found == {owner: [{"secret": secret_for(owner, SECRET), "is_current": True}] for owner in ("ann", "bob")}
    assert found["ann"] != found["bob"]


def test_without_a_signing_secret_there_are_none(api: Gateway) -> None:
    """A deployment that signs nothing says so by an empty list."""
    assert api.send("GET", PATH).body == {"secrets": []}


def test_a_secret_that_cannot_be_read_is_a_503(api: Gateway) -> None:
    """As everything that AWS does not answer for the moment."""
    Stack.faked({Variable.SIGNING_SECRET: "gone"}, {"signing": SECRET})
    assert api.send("GET", PATH).status == 503
