"""How much the API takes in one request, and gives in one response."""

from __future__ import annotations

MAX_BATCH = 100
"""Tasks that a request creates, and ids that one asks for."""
MAX_PAGE = 100
"""Entries of a list on a page."""
