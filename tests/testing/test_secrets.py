"""Tests handlers' secrets in the testing kit."""

from __future__ import annotations

import pytest

from duetime.handlers import Context, secret
from duetime.handlers.secrets import FOR_TESTS
from duetime_testing import Duetime


@pytest.mark.duetime(secrets={"stripe": "sk_test"})
def test_handlers_get_the_secrets_of_the_marker(duetime: Duetime) -> None:
    """A test can change a secret at any time, and a secret that is not set fails the attempt."""
    seen: list[str] = []

    def charge(_context: Context, payload: str) -> None:
        seen.append(secret(payload))

    duetime.register("charge", charge)
    duetime.client.tasks.create("charge", payload="stripe")
    duetime.run_until_idle()
    duetime.secrets["stripe"] = "sk_rotated"
    duetime.client.tasks.create("charge", payload="stripe")
    failed = duetime.client.tasks.create("charge", payload="crm", retry={"max_attempts": 1})
    duetime.run_until_idle()
    assert seen == ["sk_test", "sk_rotated"]
    error = duetime.client.tasks.get(failed.id).error
    assert error is not None
    assert error.type == "SecretMissing"


def test_secrets_of_an_inner_account_end_with_it() -> None:
    """When an inner account is closed, the outer account's secrets are used again."""
    outer = Duetime(secrets={"a": "1"})
    inner = Duetime(secrets={"a": "2", "b": "3"})
    inner.close()
    assert FOR_TESTS == {"a": "1"}
    outer.close()
    assert FOR_TESTS == {}
