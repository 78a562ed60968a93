"""Handlers for intake rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import IntakeServices
from duetime.contract import intake_rules
from duetime.contract.intake_rules import IntakeRuleList, new_rule_name, rule_name, rule_of, rule_response
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(intake_rules.LIST)
def list_intake_rules(_: Request) -> Response:
    """Read all rules."""
    found = composed(IntakeServices).rule_admin.list()
    return answer(json_text(IntakeRuleList(rules=[rule_response(each) for each in found])))


@route(intake_rules.READ)
def get_intake_rule(request: Request) -> Response:
    """Read one rule."""
    return answer(json_text(rule_response(composed(IntakeServices).rule_admin.get(rule_name(request.name)))))


@route(intake_rules.PUT)
def put_intake_rule(request: Request) -> Response:
    """Set a rule."""
    services = composed(IntakeServices)
    rule = rule_of(new_rule_name(request.name), request.document(), services.owner)
    return answer(json_text(rule_response(services.rule_admin.put(request.caller, rule))))


@route(intake_rules.DELETE)
def delete_intake_rule(request: Request) -> Response:
    """Delete a rule, and return the deleted rule."""
    request.reject_body()
    return answer(json_text(rule_response(composed(IntakeServices).rule_admin.delete(rule_name(request.name)))))
