"""Why a project is not deployed."""

from __future__ import annotations


class NotDeployable(Exception):
    """The settings or the handlers of a project would not give a deployment that works; the message says what to do."""
