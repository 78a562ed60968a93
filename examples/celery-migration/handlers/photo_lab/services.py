"""In-memory services that the handlers call: a mail server, a payment provider, an archive and partners."""

from __future__ import annotations

from dataclasses import dataclass, field


class Declined(Exception):
    """The payment provider declines a payment permanently."""


class Busy(Exception):
    """The payment provider is busy and asks for a retry later."""


@dataclass
class Services:
    """The services, which record their calls; `failures` contains how many more times each service fails."""

    mails: list[tuple[str, str]] = field(default_factory=list)
    charges: dict[str, int] = field(default_factory=dict)
    paid: set[str] = field(default_factory=set)
    uploads: list[tuple[str, int]] = field(default_factory=list)
    sheets: dict[str, list[str]] = field(default_factory=dict)
    stock: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    def _fail(self, what: str, error: Exception) -> None:
        if self.failures.get(what, 0) > 0:
            self.failures[what] -= 1
            raise error

    def mail(self, to: str, text: str) -> None:
        """Send a mail."""
        self._fail("mail", ConnectionError("the mail server does not answer"))
        self.mails.append((to, text))

    def charge(self, order: str, amount: int) -> str:
        """Take a payment, and return the receipt."""
        self._fail("charge", Busy("come back in a minute"))
        if amount > 1000:
            raise Declined("the card is declined")
        self.charges[order] = amount
        self.paid.add(order)
        return f"receipt-{order}"

    def upload(self, order: str, files: list[str]) -> None:
        """Upload files to the archive."""
        self.uploads.append((order, len(files)))

    def fetch_stock(self, session: object, partner: str) -> int:
        """Return the number of articles that a partner has."""
        self._fail(partner, ConnectionError("the partner does not answer"))
        self.stock[partner] = len(partner)
        return self.stock[partner]


SERVICES = Services()
