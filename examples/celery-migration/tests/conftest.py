"""Resets the services before each test."""

from __future__ import annotations

from dataclasses import fields

import pytest

from photo_lab.services import SERVICES, Services


@pytest.fixture(autouse=True)
def _new_services() -> None:
    fresh = Services()
    for field in fields(Services):
        setattr(SERVICES, field.name, getattr(fresh, field.name))
