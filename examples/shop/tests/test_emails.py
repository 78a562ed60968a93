"""Tests of the reminders for abandoned carts."""

from __future__ import annotations

from duetime_testing import Duetime

from shop.services import MAILBOX
from website import QUIET_SECONDS, cart_bought, cart_changed


def new_cart() -> dict[str, str]:
    """Return a cart as the web site stores it."""
    return {"id": "17", "email": "ada@example.org"}


def test_many_changes_are_one_reminder(duetime: Duetime) -> None:
    """A cart that is changed several times causes one reminder, half an hour after the last change."""
    cart = new_cart()
    for _ in range(5):
        cart_changed(duetime.client, cart)
        duetime.advance(minutes=20)
    assert MAILBOX.sent == {}
    duetime.advance(minutes=10)
    assert [to for to, _ in MAILBOX.sent.values()] == ["ada@example.org"]
    duetime.advance(hours=5)
    duetime.assert_ran("email", times=1)


def test_a_change_after_the_reminder_begins_another(duetime: Duetime) -> None:
    """A change to the cart after the reminder was sent creates a new reminder."""
    cart = new_cart()
    cart_changed(duetime.client, cart)
    duetime.advance(seconds=QUIET_SECONDS)
    cart_changed(duetime.client, cart)
    duetime.advance(seconds=QUIET_SECONDS)
    assert len(MAILBOX.sent) == 2


def test_a_bought_cart_gets_no_reminder(duetime: Duetime) -> None:
    """Buying the cart cancels the pending reminder."""
    cart = new_cart()
    cart_changed(duetime.client, cart)
    cart_bought(duetime.client, cart)
    duetime.advance(hours=2)
    assert MAILBOX.sent == {}


def test_a_crash_sends_no_second_e_mail(duetime: Duetime) -> None:
    """If a worker crashes after sending an e-mail, the next attempt does not send the e-mail again."""
    duetime.faults.crash_before_finish(attempt=1)
    duetime.client.tasks.create("email", payload={"to": "ada@example.org", "text": "hello"})
    duetime.run_until_idle()
    duetime.assert_ran("email", times=2)
    assert len(MAILBOX.sent) == 1
