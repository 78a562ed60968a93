"""The steps of an order. Each can be undone, so that a later one that fails undoes all before it: a saga."""

from __future__ import annotations

from typing import TypedDict

from duetime.handlers import Context, Unretriable, handler

from shop.services import BANK, WAREHOUSE, Declined, OutOfStock


class Order(TypedDict):
    """The payload of each step; the order's id is the key by which the services know a repeat."""

    order: str
    article: str
    number: int
    amount: int
    address: str


@handler("order.reserve")
class Reserve:
    """Keeps the articles."""

    def run(self, context: Context, payload: Order) -> None:
        """Reserve them; a shortage is final, because a retry would not help."""
        try:
            WAREHOUSE.reserve(payload["order"], payload["article"], payload["number"])
        except OutOfStock as error:
            raise Unretriable(f"no {error}") from error

    def rollback(self, context: Context, payload: Order) -> None:
        """Put them back."""
        WAREHOUSE.release(payload["order"])


@handler("order.charge")
class Charge:
    """Takes the money."""

    def run(self, context: Context, payload: Order) -> None:
        """Charge the card; a bank that does not respond is called again, a refusal is final."""
        try:
            BANK.charge(payload["order"], payload["amount"])
        except Declined as error:
            raise Unretriable(str(error)) from error

    def rollback(self, context: Context, payload: Order) -> None:
        """Give it back."""
        BANK.refund(payload["order"])


@handler("order.ship")
class Ship:
    """Sends the parcel."""

    def run(self, context: Context, payload: Order) -> None:
        """Hand it to the carrier."""
        WAREHOUSE.ship(payload["order"], payload["address"])

    def rollback(self, context: Context, payload: Order) -> None:
        """Nothing to undo: shipping is the last step."""
