from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.exceptions import ConnectTimeoutError
from moto import mock_aws

from duetime.adapters.targets import signing
from duetime.adapters.targets.http_client import DirectCaller
from duetime.adapters.targets.http_messages import Call, NoResponse
from duetime.adapters.targets.signing import Signer, SigningKeyMissing, SigningSecrets
from duetime.domain.times import MINUTE, SECOND
from tests.adapters.targets.peers import LOOPBACK, answering, peer
from tests.adapters.targets.receiver import is_signed_by, secret_for
from tests.clocks import StandingClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_secretsmanager import SecretsManagerClient

OLD, NEW = "whsec_" + "T2xk" * 16, "TmV3" * 16


@pytest.fixture
def client() -> Iterator[SecretsManagerClient]:
    """Secrets Manager with one secret, `signing`."""
    with mock_aws():
        session = boto3.Session("testing", "testing", region_name="us-east-1")
        made = session.client("secretsmanager")
        made.create_secret(Name="signing", SecretString=OLD)
        yield made


def test_the_vector_of_the_specification_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secret, id, time and body of the published example give its signature.

    Source: Standard Webhooks, test data of the reference libraries.
    """
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    signer = Signer(lambda: [secret], StandingClock(1_614_265_330_000))
    monkeypatch.setattr(signing, "secret_of_owner", lambda secret, _owner: secret)
    headers = signer.headers("ann", "msg_p5jXN8AQM9LWM0D4loKWxJek", body)
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_both_live_secrets_sign(client: SecretsManagerClient) -> None:
    """After a rotation a receiver may still hold the old secret, or have the new one already; a third is refused."""
    clock = StandingClock()
    client.put_secret_value(SecretId="signing", SecretString=NEW)
    headers = Signer(SigningSecrets(client, "signing", clock), clock).headers("ann", "id-1", "{\u00e9}".encode())
    body = "{\u00e9}".encode()
    assert is_signed_by(secret_for("ann", OLD.removeprefix("whsec_")), headers, body)
    assert is_signed_by(secret_for("ann", NEW), headers, body)
    assert not is_signed_by(secret_for("ann", "Zm9v" * 16), headers, body)
    assert not is_signed_by(secret_for("ann", NEW), headers, body + b" ")
    assert headers["webhook-signature"].count("v1,") == 2


@pytest.mark.parametrize("other", ["bob", "an", "annn", "Ann", "", "whsec_"])
def test_nobody_signs_in_the_name_of_another_owner(other: str) -> None:
    """Who has the secret of one owner cannot make a call that verifies as another's; nor does the deployment's."""
    headers = Signer(lambda: [NEW], StandingClock()).headers("ann", "id-1", b"{}")
    assert is_signed_by(secret_for("ann", NEW), headers, b"{}")
    assert not is_signed_by(secret_for(other, NEW), headers, b"{}")
    assert not is_signed_by(NEW, headers, b"{}")
    assert not is_signed_by(secret_for("ann", secret_for("bob", NEW).removeprefix("whsec_")), headers, b"{}")


def test_a_secret_that_was_never_rotated_signs_alone(client: SecretsManagerClient) -> None:
    """There is no previous one then, and one signature."""
    clock = StandingClock()
    assert SigningSecrets(client, "signing", clock)() == (OLD,)


def test_secrets_are_read_again_after_some_minutes(client: SecretsManagerClient) -> None:
    """A rotation is noticed within five minutes, and until then no request is made for it."""
    clock = StandingClock()
    secrets = SigningSecrets(client, "signing", clock)
    assert secrets() == (OLD,)
    client.put_secret_value(SecretId="signing", SecretString=NEW)
    clock.at += 5 * MINUTE - SECOND
    assert secrets() == (OLD,)
    clock.at += SECOND
    assert secrets() == (NEW, OLD)


def test_secrets_outlive_an_outage(client: SecretsManagerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were read go on signing while Secrets Manager does not answer."""
    clock = StandingClock()
    secrets = SigningSecrets(client, "signing", clock)
    assert secrets() == (OLD,)

    def fail(**_: object) -> None:
        raise ConnectTimeoutError(endpoint_url="https://secrets")

    monkeypatch.setattr(client, "get_secret_value", fail)
    clock.at += 60 * MINUTE
    assert secrets() == (OLD,)


def test_nothing_is_sent_unsigned(client: SecretsManagerClient) -> None:
    """Without a secret there is a failure that may be retried, and no call."""
    clock = StandingClock()
    secrets = SigningSecrets(client, "gone", clock)
    with pytest.raises(SigningKeyMissing):
        secrets()
    with peer(answering(b"")) as other:
        caller = DirectCaller(frozenset({LOOPBACK}), Signer(secrets, clock), clock)
        reply = caller.call(Call("id-1", "PUT", f"http://{LOOPBACK}:{other.port}/", body=b"{}"))
    assert isinstance(reply, NoResponse)
    assert (reply.kind, reply.retriable) == ("SigningKeyMissing", True)
    assert other.requests == []
