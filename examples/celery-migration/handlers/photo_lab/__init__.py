"""The handlers of the photo lab: importing this package registers them."""

from photo_lab import orders, partners, reports

__all__ = ["orders", "partners", "reports"]
