"""The photo lab's handlers, which are registered when this package is imported."""

from photo_lab import orders, partners, reports

__all__ = ["orders", "partners", "reports"]
