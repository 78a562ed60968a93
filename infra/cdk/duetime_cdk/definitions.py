"""Constructs for schedules and topology definitions that CloudFormation manages together with your CDK app's stack."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aws_cdk import CustomResource, RemovalPolicy, Stack, Token
from constructs import Construct
from pydantic_core import to_jsonable_python

from duetime.contract.http.request_errors import FaultyRequest
from duetime.contract.http.request_json import read
from duetime.contract.schedules.bodies import TIMINGS, ScheduleFields
from duetime.contract.schedules.decoding import schedule_spec
from duetime.contract.tasks.fields import OWNER_PATTERN
from duetime.contract.topologies.definitions import definition_content, new_definition_name
from duetime.domain.errors import FieldInvalid
from duetime.settings import Authentication
from duetime_cdk.definition_resources.handler import DEFINITION, SCHEDULE
from duetime_cdk.errors import NotDeployable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_cdk.stack import DuetimeStack

_OWNER = re.compile(OWNER_PATTERN)
_COUNTED_DOWN = "remaining_runs"
DEFAULTS: Mapping[str, Any] = {
    name: to_jsonable_python(field.get_default(call_default_factory=True))
    for name, field in ScheduleFields.model_fields.items()
    if name not in {*TIMINGS, _COUNTED_DOWN, "task", "name"}
}
"""The API's defaults for fields that are left out when a schedule is updated."""


class DefinitionInvalid(NotDeployable, ValueError):
    """The API would reject a schedule or a topology definition."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")


class Schedule(Construct):
    """A schedule that CloudFormation creates, updates and deletes with your stack.

    `Schedule(self, "Nightly", stack=scheduler, name="nightly", cron="30 1 * * *", task={"type": "report"})`
    """

    def __init__(  # noqa: PLR0913 - users pass these arguments by name
        self,
        scope: Construct,
        id_: str,
        *,
        stack: DuetimeStack,
        name: str,
        task: Mapping[str, Any],
        owner: str = "",
        adopt: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        **fields: Any,  # noqa: ANN401 - the fields of the API
    ) -> None:
        """Add the schedule to your app.

        Args:
            scope: a construct of your app.
            id_: the construct's id in that scope.
            stack: the deployment that runs the schedule.
            name: the schedule's name; a different name means a different schedule.
            task: the task that each occurrence creates, with the fields of the API.
            owner: the schedule's owner, an identity in the form of owners, such as `123456789012:role/Billing`; by
                default the owner of the stack's definitions.
            adopt: whether to take over an existing schedule with that name; otherwise, an existing schedule is an
                error.
            removal_policy: `RETAIN` keeps the schedule when it is removed from your app.
            **fields: the other fields of the API: a timing such as `cron`, `timezone`, `overlap` and so on.

        Raises:
            DefinitionInvalid: the API would reject the request.
        """
        super().__init__(scope, id_)
        body = {**fields, "task": dict(task)}
        _validate(self, body, lambda text: schedule_spec(read(text)), {"name": name})
        properties = {"Kind": SCHEDULE, "Name": name, "Owner": owner, "Defaults": json.dumps(DEFAULTS)}
        _resource(self, stack, body, properties, adopt=adopt, removal_policy=removal_policy)


class TopologyDefinition(Construct):
    """A topology definition that CloudFormation creates, gives new versions and deletes with your stack."""

    def __init__(  # noqa: PLR0913 - users pass these arguments by name
        self,
        scope: Construct,
        id_: str,
        *,
        stack: DuetimeStack,
        name: str,
        nodes: Mapping[str, Any],
        owner: str = "",
        adopt: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        **fields: Any,  # noqa: ANN401 - the fields of the API
    ) -> None:
        """Add the definition to your app.

        Args:
            scope: a construct of your app.
            id_: the construct's id in that scope.
            stack: the deployment that stores the definition.
            name: the definition's name; a different name means a different definition.
            nodes: the definition's nodes, with the fields of the API.
            owner: the definition's owner, as for a schedule.
            adopt: whether to take over an existing definition with that name; otherwise, an existing definition is an
                error.
            removal_policy: `RETAIN` keeps the definition when it is removed from your app.
            **fields: the other fields of the API, such as `parameters`.

        Raises:
            DefinitionInvalid: the API would reject the request.
        """
        super().__init__(scope, id_)
        body = {**fields, "nodes": dict(nodes)}
        _validate(self, body, lambda text: definition_content(read(text), new_definition_name(name)), {})
        properties = {"Kind": DEFINITION, "Name": name, "Owner": owner}
        _resource(self, stack, body, properties, adopt=adopt, removal_policy=removal_policy)


def _resource(
    scope: Construct,
    stack: DuetimeStack,
    body: Mapping[str, Any],
    properties: Mapping[str, str],
    *,
    adopt: bool,
    removal_policy: RemovalPolicy,
) -> None:
    owner = properties["Owner"] or _default_owner(stack)
    if not Token.is_unresolved(owner) and _OWNER.fullmatch(owner) is None:
        raise DefinitionInvalid(scope.node.path, f"{owner!r} cannot own tasks")
    # CloudFormation turns numbers into strings, so the body is passed as a single string.
    own = {"Owner": owner, "Body": Stack.of(scope).to_json_string(body), **({"Adopt": "true"} if adopt else {})}
    CustomResource(
        scope,
        "Resource",
        service_token=stack.definition_resources.function_arn,
        resource_type=f"Custom::Duetime{properties['Kind'].capitalize()}",
        properties={**properties, **own},
        removal_policy=removal_policy,
    )


def _default_owner(stack: DuetimeStack) -> str:
    match stack.duetime_environment.authentication:
        case Authentication.IAM:
            return f"{stack.account}:role/{stack.stack_name}-definitions"
        case Authentication.JWT:
            return f"{stack.stack_name}-definitions"
        case Authentication.NONE:
            return "local"


def _validate(
    scope: Construct, body: Mapping[str, Any], decode: Callable[[str], object], more: Mapping[str, str]
) -> None:
    """Validate a body as the API does, except for values that are known only at deployment."""
    whole = {**body, **more}
    try:
        decode(json.dumps(whole))
    except FieldInvalid as fault:
        if not _is_unknown(whole, fault.field):
            raise DefinitionInvalid(scope.node.path, f"{fault.field} {fault.reason}") from None
    except FaultyRequest as error:
        known = [each for each in error.faults if not _is_unknown(whole, each.field)]
        if known:
            raise DefinitionInvalid(
                scope.node.path, "; ".join(f"{each.field} {each.reason}" for each in known)
            ) from None


def _is_unknown(value: Any, path: str) -> bool:  # noqa: ANN401 - any JSON
    """Whether the value at a path, such as `task.target.arn`, is a CDK token."""
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return bool(Token.is_unresolved(value))
