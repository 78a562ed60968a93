"""Signatures of HTTP calls, with which a receiver verifies that duetime sent the calls for an owner.

Each owner has separate secrets, which are derived from the deployment's keys. A receiver that can verify one owner's
calls can therefore neither verify nor forge another owner's calls. Each call has a symmetric signature (`v1`) and an
asymmetric one (`v1a`), whose public key lets receivers verify calls without being able to forge them.

Source: Standard Webhooks, specification: "Signature scheme", `v1` (HMAC-SHA256) and `v1a` (Ed25519).
"""

from __future__ import annotations

import base64
import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from standardwebhooks.webhooks import Webhook

from duetime.domain.times import MINUTE, SECOND, to_datetime
from duetime_common.frozen_classes import frozen
from duetime_common.signing_keys import SigningKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mypy_boto3_secretsmanager import SecretsManagerClient
    from nacl.signing import SigningKey

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock
    from duetime_common.signing_keys import SecretVersion

_KEPT_FOR = 5 * MINUTE
"""Longest time until this process notices new keys, in milliseconds."""
_SYMMETRIC, _ASYMMETRIC = b"duetime webhook", b"duetime webhook ed25519"


class SigningKeyMissing(Exception):
    """No signing secret can be read, and calls must not be sent unsigned."""


@frozen
class OwnerSecret:
    """One live secret of an owner, with its key pair.

    Attributes:
        version: the version of the secret.
    """

    owner: str
    version: SecretVersion

    @property
    def secret(self) -> str:
        """The symmetric secret in the form of Standard Webhooks: `whsec_` and 32 bytes in base64."""
        return f"whsec_{_text(self._derived(_SYMMETRIC))}"

    @property
    def public_key(self) -> str:
        """The public key in the form of Standard Webhooks: `whpk_` and 32 bytes in base64."""
        return f"whpk_{_text(bytes(self._private_key.verify_key))}"

    def signatures(self, id_: str, now: datetime, body: str) -> tuple[str, str]:
        """The symmetric and the asymmetric signature of a call."""
        signed = f"{id_}.{int(now.timestamp())}.{body}".encode()
        return Webhook(self.secret).sign(id_, now, body), f"v1a,{_text(self._private_key.sign(signed).signature)}"

    @property
    def _private_key(self) -> SigningKey:
        # The module is imported here, because only the egress function signs calls, and the API rarely shows keys.
        from nacl.signing import SigningKey  # noqa: PLC0415 - see the line above

        return SigningKey(self._derived(_ASYMMETRIC))

    def _derived(self, purpose: bytes) -> bytes:
        """32 bytes that are derived for a purpose.

        The separator is unambiguous, because owners contain no zero byte.
        """
        of_owner = f"{self.owner}\0{self.version.turn}\0{self.version.period}".encode()
        return hmac.digest(base64.b64decode(self.version.key), purpose + b"\0" + of_owner, "sha256")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@frozen
class Signer:
    """Signs with every live secret of an owner, so that receivers can change their secrets at any time.

    Attributes:
        keys: returns the deployment's keys.
        clock: the clock for scheduled rotations and for the signed time, which limits replays of old requests.
    """

    keys: Callable[[], SigningKeys]
    clock: Clock

    def headers(self, owner: str, id_: str, body: bytes) -> Mapping[str, str]:
        """The headers of a signed request.

        Args:
            owner: owner for whom the call is made.
            id_: the request's id, which is the same for every repeat.
            body: the body in UTF-8.

        Raises:
            SigningKeyMissing: there is no secret to sign with.
        """
        now = to_datetime(self.clock.now() // SECOND * SECOND).astimezone(UTC)
        pairs = [secret.signatures(id_, now, body.decode()) for secret in self.secrets_of(owner)]
        # Symmetric signatures come first, because some receivers look only at the first signatures.
        signatures = [*(symmetric for symmetric, _ in pairs), *(asymmetric for _, asymmetric in pairs)]
        return {
            "webhook-id": id_,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }

    def secrets_of(self, owner: str) -> Sequence[OwnerSecret]:
        """The live secrets of an owner, beginning with the current secret.

        Raises:
            SigningKeyMissing: there is no secret.
        """
        return [OwnerSecret(owner, version) for version in self.keys().live(owner, self.clock.now())]

    def rotates_at(self, owner: str) -> Millis | None:
        """The time at which the next scheduled rotation replaces an owner's secret; `None` if no rotation is scheduled.

        Raises:
            SigningKeyMissing: there is no secret.
        """
        return self.keys().rotates_at(owner, self.clock.now())


class StoredSigningKeys:
    """Reads the signing keys from Secrets Manager, and reads them again every five minutes."""

    def __init__(self, client: SecretsManagerClient, secret_id: str, clock: Clock) -> None:
        self._client = client
        self._secret_id = secret_id
        self._clock = clock
        self._read: SigningKeys | None = None
        self._read_at: Millis = 0

    def __call__(self) -> SigningKeys:
        """The keys, or the last known keys if Secrets Manager does not respond.

        Raises:
            SigningKeyMissing: no keys have been read yet.
        """
        now = self._clock.now()
        if self._read is None or now - self._read_at >= _KEPT_FOR:
            try:
                text = self._client.get_secret_value(SecretId=self._secret_id)["SecretString"]
                self._read, self._read_at = SigningKeys.parse(text), now
            except (ClientError, BotoCoreError, ValueError) as error:
                if self._read is None:
                    raise SigningKeyMissing(f"the signing secret cannot be read: {type(error).__name__}") from error
        return self._read
