"""Signatures of HTTP calls, with which a receiver verifies that duetime sent them for an owner.

Each owner has secrets of its own, derived from those of the deployment: who can verify the calls of one owner can
neither verify nor forge those of another.

Source: Standard Webhooks, specification of the symmetric signature `v1`.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from standardwebhooks.webhooks import Webhook

from duetime.domain.times import MINUTE, SECOND, to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mypy_boto3_secretsmanager import SecretsManagerClient

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock

_STAGES = ("AWSCURRENT", "AWSPREVIOUS")
"""The two live versions of the secret; Secrets Manager moves the labels when a new value is put."""
_KEPT_FOR = 5 * MINUTE
"""A new value is noticed within this time."""


class SigningKeyMissing(Exception):
    """No signing secret can be read; calls are not sent unsigned instead."""


_PREFIX = "whsec_"
_PURPOSE = b"duetime webhook\0"


def secret_of_owner(secret: str, owner: str) -> str:
    """The secret of an owner, in the form of Standard Webhooks: `whsec_` and 32 bytes in base64.

    Args:
        secret: a secret of the deployment, in base64, with or without the prefix.
        owner: the owner.
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    digest = hmac.digest(key, _PURPOSE + owner.encode(), "sha256")
    return f"{_PREFIX}{base64.b64encode(digest).decode()}"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with every live secret of an owner, so that receivers may change theirs at any time.

    Attributes:
        secrets: returns the live secrets of the deployment, the current one first.
        clock: clock for the signed time, which limits replays of old requests.
    """

    secrets: Callable[[], Sequence[str]]
    clock: Clock

    def headers(self, owner: str, id_: str, body: bytes) -> Mapping[str, str]:
        """The headers of a signed request.

        Args:
            owner: for whom the call is made.
            id_: the same for every repeat of the request.
            body: body in UTF-8.

        Raises:
            SigningKeyMissing: there is no secret to sign with.
        """
        now = to_datetime(self.clock.now() // SECOND * SECOND).astimezone(UTC)
        text = body.decode()
        signatures = [_signature(secret, id_, now, text) for secret in self.secrets_of(owner)]
        return {
            "webhook-id": id_,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }

    def secrets_of(self, owner: str) -> Sequence[str]:
        """The live secrets of an owner, the current one first.

        Raises:
            SigningKeyMissing: there is no secret.
        """
        return [secret_of_owner(secret, owner) for secret in self.secrets()]


def _signature(secret: str, id_: str, now: datetime, text: str) -> str:
    return Webhook(secret).sign(id_, now, text)


class SigningSecrets:
    """The live secrets in Secrets Manager, read again every few minutes."""

    def __init__(self, client: SecretsManagerClient, secret_id: str, clock: Clock) -> None:
        self._client = client
        self._secret_id = secret_id
        self._clock = clock
        self._read: tuple[str, ...] = ()
        self._read_at: Millis = 0

    def __call__(self) -> Sequence[str]:
        """The current secret, and the previous one if there is one.

        If Secrets Manager does not answer, the last known secrets are used.

        Raises:
            SigningKeyMissing: none has ever been read.
        """
        now = self._clock.now()
        if not self._read or now - self._read_at >= _KEPT_FOR:
            try:
                self._read, self._read_at = self._read_all(), now
            except (ClientError, BotoCoreError) as error:
                if not self._read:
                    raise SigningKeyMissing(f"the signing secret cannot be read: {type(error).__name__}") from error
        return self._read

    def _read_all(self) -> tuple[str, ...]:
        current, *older = (self._value(stage) for stage in _STAGES)
        if current is None:
            raise SigningKeyMissing("there is no current signing secret")
        return (current, *(value for value in older if value))

    def _value(self, stage: str) -> str | None:
        try:
            return self._client.get_secret_value(SecretId=self._secret_id, VersionStage=stage)["SecretString"]
        except self._client.exceptions.ResourceNotFoundException:
            return None
