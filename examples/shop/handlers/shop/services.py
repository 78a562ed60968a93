"""In-memory services that the handlers call: an e-mail service, a payment provider and a warehouse.

Each service stores its actions under a key that the caller chooses, and ignores a call with the same key. Real services
work in the same way with, for example, a payment provider's idempotency key or a unique column in a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class Declined(Exception):
    """The bank declines a payment permanently."""


class OutOfStock(Exception):
    """The warehouse does not have enough of an article."""


@dataclass
class Mailbox:
    """Sends e-mails."""

    sent: dict[str, tuple[str, str]] = field(default_factory=dict)

    def send(self, key: str, to: str, text: str) -> None:
        """Send an e-mail, only once for each key."""
        self.sent.setdefault(key, (to, text))


@dataclass
class Bank:
    """Takes payments."""

    balance: int = 0
    payments: dict[str, int] = field(default_factory=dict)
    refunded: set[str] = field(default_factory=set)

    def charge(self, key: str, amount: int) -> None:
        """Take a payment, only once for each key; amounts over 1,000 are declined."""
        if amount > 1000:
            raise Declined(f"{amount} is more than the card allows")
        if key not in self.payments:
            self.payments[key] = amount
            self.balance += amount

    def refund(self, key: str) -> None:
        """Refund the payment for a key if it was taken and has not been refunded yet."""
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
        """Take articles from the stock, only once for each key."""
        if key in self.reserved:
            return
        if self.stock.get(article, 0) < number:
            raise OutOfStock(article)
        self.stock[article] -= number
        self.reserved[key] = (article, number)

    def release(self, key: str) -> None:
        """Put the reserved articles back into the stock, if they are still reserved."""
        article, number = self.reserved.pop(key, ("", 0))
        if number:
            self.stock[article] += number

    def ship(self, key: str, address: str) -> None:
        """Ship the reserved articles."""
        if not address:
            raise ValueError("where to?")
        self.shipped.add(key)


MAILBOX = Mailbox()
BANK = Bank()
WAREHOUSE = Warehouse()
