"""Tests the client's requests for task types, and the commands with their output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

TYPE = {
    "type": "mail.send",
    "has_handler": True,
    "is_pulled": False,
    "phases": ["run"],
    "payload_schema": {"type": "object", "required": ["to"]},
    "defaults": {"timeout_seconds": 30, "lock": {"key": "smtp"}},
    "sources": {"timeout_seconds": "owner", "lock": "handler"},
    "retention_days": 2.0,
    "updated_at": "2026-11-21T11:00:00Z",
    "updated_by": "ops",
}


def test_options_of_a_type_are_set_by_dotted_names(deployment: Deployment, duetime: Run) -> None:
    """An option's value is JSON or text, a dotted name sets one part, and null disables a default."""
    deployment.scripted.append(Answer(200, TYPE))
    told = duetime(
        "types", "set", "mail.send", "timeout_seconds=30", "lock.key=smtp", "lock.max_holders=2", "rate=null"
    )
    assert told.exit_code == 0
    sent = deployment.received[0]
    assert (sent.method, sent.path) == ("PUT", "/stage/v1/types/mail.send")
    assert sent.document == {"timeout_seconds": 30, "lock": {"key": "smtp", "max_holders": 2}, "rate": None}


def test_setting_an_option_as_a_whole_and_in_part_is_rejected(deployment: Deployment, duetime: Run) -> None:
    """Setting an option both as a whole and in part is refused, and nothing is sent."""
    assert duetime("types", "set", "mail.send", "lock=null", "lock.key=smtp").exit_code == 2
    assert deployment.received == []


def test_a_type_is_shown_with_the_sources_of_its_defaults(deployment: Deployment, duetime: Run) -> None:
    """The view shows whether each default comes from the handler or from the owner; the list names the defaults."""
    deployment.scripted += [Answer(200, TYPE), Answer(200, {"types": [TYPE], "next_token": None})]
    shown = duetime("types", "show", "mail.send").stdout
    assert '{"key": "smtp"} (handler)' in shown
    assert "30 (owner)" in shown
    assert "2 days after the end" in shown
    listed = duetime("types", "list").stdout
    assert all(text in listed for text in ("mail.send", "handler", "timeout_seconds, lock"))


def test_the_command_names_the_deleted_defaults(deployment: Deployment, duetime: Run) -> None:
    """The command names the deleted defaults, and `--json` prints the previous type."""
    deployment.scripted += [Answer(200, TYPE)] * 2
    assert duetime("types", "delete", "mail.send").stdout == "deleted your defaults of mail.send\n"
    assert json.loads(duetime("types", "delete", "mail.send", "--json").stdout) == TYPE
