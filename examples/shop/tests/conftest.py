"""Resets the services before each test."""

from __future__ import annotations

from dataclasses import fields

import pytest

from shop.services import BANK, MAILBOX, WAREHOUSE


@pytest.fixture(autouse=True)
def _new_services() -> None:
    for service in (BANK, MAILBOX, WAREHOUSE):
        fresh = type(service)()
        for field in fields(service):
            setattr(service, field.name, getattr(fresh, field.name))
