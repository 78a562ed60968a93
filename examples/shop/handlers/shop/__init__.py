"""The shop's handlers, which are registered when this package is imported."""

from shop import emails, orders, reports

__all__ = ["emails", "orders", "reports"]
