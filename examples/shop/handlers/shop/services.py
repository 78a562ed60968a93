"""In-memory services that the handlers call: an e-mail service, a payment provider and a warehouse.

Each keeps what it did by a key of its caller, and does nothing for a key it has seen. Real ones do the same: an
idempotency key of a payment provider, a unique column of a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class Declined(Exception):
    """The bank refuses a payment for good."""


class OutOfStock(Exception):
    """There is not enough of an article."""


@dataclass
class Mailbox:
    """Sends e-mails."""

    sent: dict[str, tuple[str, str]] = field(default_factory=dict)

    def send(self, key: str, to: str, text: str) -> None:
        """Send an e-mail, once for each key."""
        self.sent.setdefault(key, (to, text))


@dataclass
class Bank:
    """Takes payments."""

    balance: int = 0
    payments: dict[str, int] = field(default_factory=dict)
    refunded: set[str] = field(default_factory=set)

    def charge(self, key: str, amount: int) -> None:
        """Take a payment, once for each key; cards for more than 1 000 are declined."""
        if amount > 1000:
            raise Declined(f"{amount} is more than the card allows")
        if key not in self.payments:
            self.payments[key] = amount
            self.balance += amount

    def refund(self, key: str) -> None:
        """Give a payment back, if there was one and it was not given back yet."""
        if key in self.payments and key not in self.refunded:
            self.refunded.add(key)
            self.balance -= self.payments[key]


@dataclass
class Warehouse:
    """Keeps articles for orders."""

    stock: dict[str, int] = field(default_factory=dict)
    reserved: dict[str, tuple[str, int]] = field(default_factory=dict)
    shipped: set[str] = field(default_factory=set)

    def reserve(self, key: str, article: str, number: int) -> None:
        """Take articles from the shelf, once for each key."""
        if key in self.reserved:
            return
        if self.stock.get(article, 0) < number:
            raise OutOfStock(article)
        self.stock[article] -= number
        self.reserved[key] = (article, number)

    def release(self, key: str) -> None:
        """Put them back, if they are still there."""
        article, number = self.reserved.pop(key, ("", 0))
        if number:
            self.stock[article] += number

    def ship(self, key: str, address: str) -> None:
        """Send what was reserved."""
        if not address:
            raise ValueError("where to?")
        self.shipped.add(key)


MAILBOX = Mailbox()
BANK = Bank()
WAREHOUSE = Warehouse()
