"""Handlers that fetch the partners' stock."""

from __future__ import annotations

from functools import cached_property

from duetime.handlers import Context, handler

from photo_lab.services import SERVICES

PARTNERS = ("north", "south", "west")
ALERTS = "https://alerts.example.org/photo-lab"


class PartnerHandler:
    """The base class of handlers that call partners; a handler class is instantiated once per process."""

    @cached_property
    def session(self) -> object:
        """The session for calls to partners, which is opened on first use."""
        return object()


@handler("partner.sync-all")
def sync_all(context: Context, payload: None) -> None:
    """Create a task for each partner."""
    context.client.tasks.create_batch([{"type": "partner.sync", "payload": {"partner": name}} for name in PARTNERS])


@handler(
    "partner.sync",
    retry={"max_attempts": 3, "initial_seconds": 5, "multiplier": 1},
    retry_on=(ConnectionError,),
    notify_on={"to": ALERTS, "failed": True},
)
class Sync(PartnerHandler):
    """Fetches a partner's stock."""

    def run(self, context: Context, payload: dict[str, str]) -> int:
        """Fetch the stock, and return the number of articles."""
        return SERVICES.fetch_stock(self.session, payload["partner"])
