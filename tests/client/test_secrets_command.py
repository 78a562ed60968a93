"""Tests the output of `duetime secrets`, and the secret that the command stores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client import stack_outputs
from duetime_common.signing_keys import DAY_MS, SigningKeys
from tests.client.deployment import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.deployment import Deployment

    Run = Callable[..., Result]

FIRST = "T2xk" * 16
PAIRS = [
    {"secret": "whsec_new", "public_key": "whpk_new", "is_current": True},
    {"secret": "whsec_old", "public_key": "whpk_old", "is_current": False},
]


class VersionExists(Exception):
    """The error for a secret version that already exists with a different value."""


class _Account:
    """Implements CloudFormation and Secrets Manager with one stack and its secret."""

    def __init__(self) -> None:
        self.stored = FIRST
        self.versions = {"0": FIRST}
        self.meanwhile: list[str] = []
        """Values that another operator stores before the command does, based on the same version."""
        self.exceptions = SimpleNamespace(ResourceExistsException=VersionExists)

    def create_client(self, _name: str) -> _Account:
        return self

    def describe_stacks(self, **_stack: str) -> dict[str, Any]:
        return {"Stacks": [{"Outputs": [{"OutputKey": "SigningSecretArn", "OutputValue": "arn"}]}]}

    def get_secret_value(self, **_secret: str) -> dict[str, str]:
        return {"SecretString": self.stored, "VersionId": next(reversed(self.versions))}

    def put_secret_value(self, ClientRequestToken: str, SecretString: str, **_secret: str) -> None:  # noqa: N803 - AWS's
        if self.meanwhile:
            self.versions[ClientRequestToken] = self.stored = self.meanwhile.pop()
        if self.versions.setdefault(ClientRequestToken, SecretString) != SecretString:
            raise VersionExists
        self.stored = SecretString


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> _Account:
    """The fake AWS account that the command uses."""
    made = _Account()
    monkeypatch.setattr(stack_outputs, "_session", lambda _stack: made)
    return made


def test_secrets_are_listed_with_their_public_keys(duetime: Run, deployment: Deployment) -> None:
    """Previous keys are marked, and the next rotation of a schedule is announced."""
    deployment.scripted.append(Answer(200, {"secrets": PAIRS, "rotates_at": "2026-12-01T00:00:00Z"}))
    shown = duetime("secrets", "list").stdout
    assert shown.splitlines()[:4] == ["whsec_new", "whsec_old  (previous)", "whpk_new", "whpk_old  (previous)"]
    assert "rotated next at 2026-12-01" in shown


def test_public_keys_of_an_owner_are_listed(duetime: Run, deployment: Deployment) -> None:
    """An owner's name may contain slashes."""
    deployment.scripted.append(Answer(200, {"owner": "a/b", "keys": PAIRS[:1], "rotates_at": None}))
    assert duetime("secrets", "keys", "a/b").stdout == "whpk_new\n"
    assert deployment.received[0].query == {"owner": ["a/b"]}


def test_a_rotation_stores_the_new_and_the_previous_key(duetime: Run, account: _Account) -> None:
    """The second rotation removes the first key, and the rotation schedule stays until another schedule is given."""
    duetime("secrets", "rotate", "--stack=prod", "--yes", "--every-days=90")
    keys = SigningKeys.parse(account.stored).keys
    assert (keys[0].days, keys[1].key, len(keys)) == (90, FIRST, 2)
    duetime("secrets", "rotate", "--stack=prod", "--yes")
    later = SigningKeys.parse(account.stored)
    assert (later.keys[0].days, later.keys[1]) == (90, keys[0])
    now = later.keys[0].since
    assert later.rotates_at("ann", now) == now + 90 * DAY_MS
    duetime("secrets", "rotate", "--stack=prod", "--yes", "--every-days=0")
    assert SigningKeys.parse(account.stored).keys[0].days == 0


def test_rotating_one_owners_key_changes_no_other_key(duetime: Run, account: _Account) -> None:
    """Rotating one owner's key leaves the deployment's key unchanged."""
    before = SigningKeys.parse(account.stored)
    duetime("secrets", "rotate", "--stack=prod", "--yes", "--owner=ann")
    after = SigningKeys.parse(account.stored)
    now = after.keys[0].owners["ann"][0]
    assert after.live("bob", now) == before.live("bob", now)
    assert after.live("ann", now)[1:] == before.live("ann", now)


def test_concurrent_rotations_are_both_stored(duetime: Run, account: _Account) -> None:
    """If two operators read the same version, the second write is repeated and keeps the first operator's change."""
    present = SigningKeys.parse(account.stored)
    account.meanwhile.append(present.rotated_for("bob", 1_000).text)
    assert duetime("secrets", "rotate", "--stack=prod", "--yes", "--owner=ann").exit_code == 0
    assert set(SigningKeys.parse(account.stored).keys[0].owners) == {"ann", "bob"}


def test_a_rotation_that_always_conflicts_ends_with_an_error(duetime: Run, account: _Account) -> None:
    """If another operator always stores first, a rotation fails with an error after a limited number of attempts."""
    present = SigningKeys.parse(account.stored)
    account.meanwhile += [present.rotated_for(f"owner-{n}", 1_000).text for n in range(9)]
    result = duetime("secrets", "rotate", "--stack=prod", "--yes", "--owner=ann")
    assert result.exit_code == 2
    assert "is under way; try again" in result.stderr
    assert "ann" not in SigningKeys.parse(account.stored).keys[0].owners


def test_an_unsupported_rotation_is_rejected_with_the_reason(duetime: Run, account: _Account) -> None:
    """A rotation schedule for one owner is refused, and so is a secret in an unknown format; nothing is stored."""
    assert duetime("secrets", "rotate", "--stack=prod", "-y", "--owner=a", "--every-days=9").exit_code == 2
    account.stored = "{}"
    assert duetime("secrets", "rotate", "--stack=prod", "--yes").exit_code == 2
    assert account.stored == "{}"
