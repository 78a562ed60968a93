"""The steps of an order, which form a saga: if a step fails, all earlier steps are undone."""

from __future__ import annotations

from typing import TypedDict

from duetime.handlers import Context, Unretriable, handler

from shop.services import BANK, WAREHOUSE, Declined, OutOfStock


class Order(TypedDict):
    """The payload for each step; the services recognize repeated calls by the order's id."""

    order: str
    article: str
    number: int
    amount: int
    address: str


@handler("order.reserve")
class Reserve:
    """Reserves the articles."""

    def run(self, context: Context, payload: Order) -> None:
        """Reserve the articles; if there are too few, fail without a retry, because a retry would not help."""
        try:
            WAREHOUSE.reserve(payload["order"], payload["article"], payload["number"])
        except OutOfStock as error:
            raise Unretriable(f"no {error}") from error

    def rollback(self, context: Context, payload: Order) -> None:
        """Put the articles back."""
        WAREHOUSE.release(payload["order"])


@handler("order.charge")
class Charge:
    """Charges the customer."""

    def run(self, context: Context, payload: Order) -> None:
        """Charge the card; the task is retried if the bank does not respond, but not if the card is declined."""
        try:
            BANK.charge(payload["order"], payload["amount"])
        except Declined as error:
            raise Unretriable(str(error)) from error

    def rollback(self, context: Context, payload: Order) -> None:
        """Refund the payment."""
        BANK.refund(payload["order"])


@handler("order.ship")
class Ship:
    """Sends the parcel."""

    def run(self, context: Context, payload: Order) -> None:
        """Hand the parcel to the carrier."""
        WAREHOUSE.ship(payload["order"], payload["address"])

    def rollback(self, context: Context, payload: Order) -> None:
        """Do nothing, because shipping is the last step and never has to be undone."""
