"""Stores the deployment's keys for signing HTTP calls in Secrets Manager's format, and rotates them.

Each owner's secret is derived from the deployment's key, the owner, and two numbers: how often the owner's secret was
rotated under this key, and how many scheduled rotation periods have passed since that rotation. Therefore, owners'
secrets are not stored, and a scheduled rotation needs no process. After the first rotation, two secrets are active at
any time: the current secret, and the secret before the last scheduled or manual rotation.
"""

from __future__ import annotations

import json
from dataclasses import field, replace
from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DAY_MS = 86_400_000
MOST_SECRET_BYTES = 65_536
"""Maximum size of a secret, in bytes (Source: AWS Secrets Manager quotas, "Secret value size")."""
_LIVE_KEYS = 2


class SigningKeysFull(Exception):
    """The deployment's secret is too small for the number of individual rotations of owners' secrets."""

    def __init__(self) -> None:
        super().__init__("too many owners were rotated one by one; rotate the secrets of all owners")


@frozen
class SecretVersion:
    """Identifies an owner's secret.

    Attributes:
        key: the deployment's key, in base64.
        turn: how often the owner's secret was rotated under this key.
        period: how many scheduled rotation periods have passed since the last of these rotations.
    """

    key: str
    turn: int = 0
    period: int = 0


@frozen
class SigningKey:
    """A signing key of the deployment.

    Attributes:
        key: 24 to 64 random bytes in base64.
        since: when the key became current, in milliseconds since 1970; 0 if unknown.
        days: days from one scheduled rotation to the next; 0 if no rotations are scheduled.
        owners: for each owner, the times at which the owner's secret was rotated under this key, in milliseconds since
            1970, in order.
    """

    key: str
    since: int = 0
    days: int = 0
    owners: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def starts(self, owner: str) -> tuple[int, ...]:
        """When each turn of an owner began, in milliseconds since 1970."""
        return (self.since, *self.owners.get(owner, ()))

    def version(self, turn: int, since: int, at: int) -> SecretVersion:
        """The version that is current at the time `at`, in a turn that began at `since`."""
        length = self.days * DAY_MS
        return SecretVersion(self.key, turn, max(0, at - since) // length if length else 0)


@frozen
class SigningKeys:
    """A deployment's signing keys: the current key, followed by any previous key."""

    keys: tuple[SigningKey, ...]

    @classmethod
    def parse(cls, text: str) -> SigningKeys:
        """Parse the stored text, which is JSON or the bare key that CloudFormation generates.

        Raises:
            ValueError: the text has neither form.
        """
        if not text.startswith("{"):
            return cls((SigningKey(text.removeprefix("whsec_")),))
        try:
            return cls(
                tuple(
                    SigningKey(
                        one["key"],
                        one["since"],
                        one["days"],
                        {owner: tuple(times) for owner, times in one["owners"].items()},
                    )
                    for one in json.loads(text)["keys"]
                )
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("the signing secret has an unknown format") from error

    @property
    def text(self) -> str:
        """The text to store.

        Raises:
            SigningKeysFull: the text is too large for Secrets Manager.
        """
        keys = [{"key": one.key, "since": one.since, "days": one.days, "owners": {**one.owners}} for one in self.keys]
        text = json.dumps({"keys": keys}, separators=(",", ":"))
        if len(text.encode()) > MOST_SECRET_BYTES:
            raise SigningKeysFull
        return text

    def live(self, owner: str, now: int) -> tuple[SecretVersion, ...]:
        """The versions of an owner's secret that sign at a given time: the current version, and any previous version.

        Args:
            owner: the owner.
            now: the time, in milliseconds since 1970.
        """
        (key, turn, since), *older = self._turns(owner)
        current = key.version(turn, since, now)
        if current.period:
            return current, replace(current, period=current.period - 1)
        # The second version is the one that was current at the last moment before this turn.
        return (current, *(one.version(number, began, since - 1) for one, number, began in older[:1]))

    def rotates_at(self, owner: str, now: int) -> int | None:
        """When a scheduled rotation next replaces an owner's secret, in milliseconds since 1970; `None` without one."""
        key, turn, since = next(self._turns(owner))
        return since + (key.version(turn, since, now).period + 1) * key.days * DAY_MS if key.days else None

    def rotated(self, key: str, now: int, days: int | None = None) -> SigningKeys:
        """The keys after a rotation of all owners' secrets.

        Args:
            key: the new key, in base64.
            now: the time, in milliseconds since 1970.
            days: days between scheduled rotations, from now on; 0 turns them off, `None` keeps the current number.
        """
        new = SigningKey(key, now, self.keys[0].days if days is None else days)
        return SigningKeys((new, *self.keys[: _LIVE_KEYS - 1]))

    def rotated_for(self, owner: str, now: int) -> SigningKeys:
        """The keys after a rotation of one owner's secret."""
        current, *older = self.keys
        owners = {**current.owners, owner: (*current.owners.get(owner, ()), now)}
        return SigningKeys((replace(current, owners=owners), *older))

    def _turns(self, owner: str) -> Iterator[tuple[SigningKey, int, int]]:
        """Yield the key, number and beginning of each turn of an owner, the newest turn first."""
        for key in self.keys:
            for turn, since in reversed([*enumerate(key.starts(owner))]):
                yield key, turn, since
