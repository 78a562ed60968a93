"""Errors that explain why a project cannot be deployed."""

from __future__ import annotations


class NotDeployable(Exception):
    """The settings or handlers of a project are not deployable; the message explains how to fix them."""


class UnsafeEnvironment(NotDeployable, ValueError):
    """The settings of an environment would leave it open, or contradict each other."""
