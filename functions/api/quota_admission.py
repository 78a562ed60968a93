"""Admits requests within the quotas of their owners; without quotas in the settings, nothing more is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed

if TYPE_CHECKING:
    from duetime.services.quotas.rates import QuotaGuard

    from .requests import Request

# ruff: noqa: PLC0415 - see the docstring


def admit_read(request: Request) -> None:
    """Admit a request, if it reads.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if request.owner and request.operation.method == "GET" and composed().settings.has_quotas:
        _guard().admit_read(request.owner)


def admit_tasks(request: Request, number: int = 1, *, nodes: int = 0) -> None:
    """Admit a request that creates so many tasks, or a topology of so many nodes.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if composed().settings.has_quotas:
        _guard().admit_tasks(request.owner, number, request.size, nodes)


def admit_upload(request: Request, size: int) -> None:
    """Admit a request that uploads a payload of this size.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if composed().settings.has_quotas:
        _guard().admit_tasks(request.owner, 0, size)


def admit_schedule(request: Request) -> None:
    """Admit a request that creates a schedule.

    Raises:
        QuotaExceeded: the owner has used up a quota.
    """
    if composed().settings.has_quotas:
        _guard().admit_schedule(request.owner, request.size)


def _guard() -> QuotaGuard:
    from duetime.composition.quotas import QuotaServices

    return composed(QuotaServices).guard
