"""The handlers of the shop: importing this package registers them."""

from shop import emails, orders, reports

__all__ = ["emails", "orders", "reports"]
