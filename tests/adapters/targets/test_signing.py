from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.exceptions import ConnectTimeoutError
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from moto import mock_aws

from duetime.adapters.targets import signing
from duetime.adapters.targets.http_client import DirectCaller
from duetime.adapters.targets.http_messages import Call, NoResponse
from duetime.adapters.targets.signing import Signer, SigningKeyMissing, StoredSigningKeys
from duetime.domain.times import DAY, MINUTE, SECOND
from duetime_common.signing_keys import SigningKey, SigningKeys
from tests.adapters.targets.peers import LOOPBACK, answering, peer
from tests.adapters.targets.receiver import is_signed_by, is_signed_by_key, public_key_for, secret_for
from tests.clocks import StandingClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_secretsmanager import SecretsManagerClient

OLD, NEW = "T2xk" * 16, "TmV3" * 16


@pytest.fixture
def client() -> Iterator[SecretsManagerClient]:
    """Return Secrets Manager with one secret, `signing`."""
    with mock_aws():
        session = boto3.Session("testing", "testing", region_name="us-east-1")
        made = session.client("secretsmanager")
        made.create_secret(Name="signing", SecretString=f"whsec_{OLD}")
        yield made


def keys_of(*keys: str) -> Callable[[], SigningKeys]:
    """Return the keys of a deployment, the current key first."""
    found = SigningKeys(tuple(SigningKey(key) for key in keys))
    return lambda: found


def test_the_signature_matches_the_test_vector_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret, id, time and body of the specification's example produce its signature.

    Source: Standard Webhooks, test data of the reference libraries.
    """
    secret, body = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), b'{"test": 2432232314}'
    signer = Signer(keys_of(NEW), StandingClock(1_614_265_330_000))
    monkeypatch.setattr(
        signing.OwnerSecret, "_derived", lambda _self, purpose: (secret + bytes(8))[: 24 + 8 * (b"ed" in purpose)]
    )
    headers = dict(signer.headers("ann", "msg_p5jXN8AQM9LWM0D4loKWxJek", body))
    symmetric, asymmetric = headers.pop("webhook-signature").split(" ")
    assert headers == {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330"}
    assert symmetric == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert asymmetric.startswith("v1a,")


def test_both_live_secrets_sign() -> None:
    """After a rotation, both secrets sign, because receivers can have either one, and a third secret is refused."""
    body = "{\u00e9}".encode()
    headers = Signer(keys_of(NEW, OLD), StandingClock()).headers("ann", "id-1", body)
    for key in (OLD, NEW):
        assert is_signed_by(secret_for("ann", key), headers, body)
        assert is_signed_by_key(public_key_for("ann", key), headers, body)
        assert not is_signed_by(secret_for("ann", key), headers, body + b" ")
        assert not is_signed_by_key(public_key_for("ann", key), headers, body + b" ")
    assert not is_signed_by(secret_for("ann", "Zm9v" * 16), headers, body)
    assert not is_signed_by_key(public_key_for("ann", "Zm9v" * 16), headers, body)
    assert [each.partition(",")[0] for each in headers["webhook-signature"].split(" ")] == ["v1", "v1", "v1a", "v1a"]


@pytest.mark.parametrize("other", ["bob", "an", "annn", "Ann", "", "whsec_"])
def test_no_secret_can_sign_for_another_owner(other: str) -> None:
    """A call signed with another owner's secret or with the deployment's secret does not verify for an owner."""
    headers = Signer(keys_of(NEW), StandingClock()).headers("ann", "id-1", b"{}")
    assert is_signed_by(secret_for("ann", NEW), headers, b"{}")
    assert not is_signed_by(secret_for(other, NEW), headers, b"{}")
    assert not is_signed_by_key(public_key_for(other, NEW), headers, b"{}")
    assert not is_signed_by(f"whsec_{NEW}", headers, b"{}")
    assert not is_signed_by(secret_for("ann", secret_for("bob", NEW).removeprefix("whsec_")), headers, b"{}")


def test_the_secret_of_a_receiver_cannot_forge_an_asymmetric_signature() -> None:
    """The key pair is not derived from the secret that receivers have."""
    (secret,) = Signer(keys_of(NEW), StandingClock()).secrets_of("ann")
    held = base64.b64decode(secret.secret.removeprefix("whsec_"))
    forged = Ed25519PrivateKey.from_private_bytes(held).public_key().public_bytes_raw()
    assert base64.b64decode(secret.public_key.removeprefix("whpk_")) != forged
    assert secret.public_key == public_key_for("ann", NEW)


def test_a_rotation_affects_only_its_owner() -> None:
    """Only the rotated owner's calls have two signatures of each kind."""
    clock = StandingClock()
    keys = SigningKeys((SigningKey(NEW),)).rotated_for("ann", clock.now())
    signer = Signer(lambda: keys, clock)
    assert [each.secret for each in signer.secrets_of("ann")] == [secret_for("ann", NEW, 1), secret_for("ann", NEW)]
    assert [each.secret for each in signer.secrets_of("bob")] == [secret_for("bob", NEW)]
    assert signer.headers("bob", "id-1", b"{}")["webhook-signature"].count("v1") == 2


def test_a_rotation_schedule_adds_secrets_at_its_times() -> None:
    """During the first period, only one secret signs; afterward, the next secret signs as well."""
    clock = StandingClock()
    keys = SigningKeys((SigningKey(NEW, clock.now(), days=90),))
    signer = Signer(lambda: keys, clock)
    clock.at += 90 * DAY - 1
    assert [each.secret for each in signer.secrets_of("ann")] == [secret_for("ann", NEW)]
    assert signer.rotates_at("ann") == clock.now() + 1
    clock.at += 1
    assert [each.secret for each in signer.secrets_of("ann")] == [
        secret_for("ann", NEW, period=1),
        secret_for("ann", NEW),
    ]
    assert signer.rotates_at("ann") == clock.now() + 90 * DAY


def test_a_rotation_takes_effect_within_five_minutes(client: SecretsManagerClient) -> None:
    """A rotation takes effect within five minutes, during which the secret is not requested again."""
    clock = StandingClock()
    keys = StoredSigningKeys(client, "signing", clock)
    assert keys() == keys_of(OLD)()
    rotated = keys().rotated(NEW, clock.now())
    client.put_secret_value(SecretId="signing", SecretString=rotated.text)
    clock.at += 5 * MINUTE - SECOND
    assert keys() == keys_of(OLD)()
    clock.at += SECOND
    assert keys() == rotated


def test_cached_secrets_sign_during_an_outage(client: SecretsManagerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Secrets Manager does not respond, secrets that were already read continue to sign."""
    clock = StandingClock()
    keys = StoredSigningKeys(client, "signing", clock)
    assert keys() == keys_of(OLD)()

    def fail(**_: object) -> None:
        raise ConnectTimeoutError(endpoint_url="https://secrets")

    monkeypatch.setattr(client, "get_secret_value", fail)
    clock.at += 60 * MINUTE
    assert keys() == keys_of(OLD)()


def test_an_invalid_secret_does_not_replace_the_last_valid_secret(client: SecretsManagerClient) -> None:
    """An invalid secret does not replace the last valid secret; without a valid secret, nothing is signed."""
    clock = StandingClock()
    keys = StoredSigningKeys(client, "signing", clock)
    assert keys() == keys_of(OLD)()
    client.put_secret_value(SecretId="signing", SecretString='{"keys": [{"key": 1}]}')
    clock.at += 60 * MINUTE
    assert keys() == keys_of(OLD)()
    with pytest.raises(SigningKeyMissing):
        StoredSigningKeys(client, "signing", clock)()


def test_nothing_is_sent_unsigned(client: SecretsManagerClient) -> None:
    """Without a secret, the call is not sent, and the attempt fails and is retried."""
    clock = StandingClock()
    keys = StoredSigningKeys(client, "gone", clock)
    with pytest.raises(SigningKeyMissing):
        keys()
    with peer(answering(b"")) as other:
        caller = DirectCaller(frozenset({LOOPBACK}), Signer(keys, clock), clock)
        reply = caller.call(Call("id-1", "PUT", f"http://{LOOPBACK}:{other.port}/", body=b"{}"))
    assert isinstance(reply, NoResponse)
    assert (reply.kind, reply.retriable) == ("SigningKeyMissing", True)
    assert other.requests == []
