"""At synthesis, checks the AWS limits that settings can exceed, so that the deployment does not fail later."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aws_cdk import CfnResource, Stack, Token
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from duetime.environment_variables import TABLES, Variable
from duetime_cdk.errors import NotDeployable
from duetime_cdk.layers.build import SETTINGS_MODULE

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES_BYTES = 4_096
"""Maximum size of all environment variables of a function (Source: AWS Lambda Developer Guide, "Lambda quotas")."""
LAYERS = 5
"""Maximum number of layers of a function (Source: as for `VARIABLES_BYTES`)."""
POLICY_BYTES = 10 * 6_144
"""Maximum size of a role's permissions in bytes, which is the size of ten managed policies; the CDK splits a long
inline policy into managed policies (Source: IAM User Guide, "IAM and AWS STS quotas")."""
PATTERN_BYTES = 2_048
"""Maximum size of a rule's event pattern (Source: Amazon EventBridge User Guide, "Amazon EventBridge quotas")."""
RESOURCES = 500
"""Maximum number of resources in a template (Source: AWS CloudFormation User Guide, "Understand CloudFormation
quotas")."""
_REFERENCE_BYTES = 150
"""Assumed size of a name or address that is known only at deployment; our queue URLs and ARNs are not longer."""
_NONE: Mapping[str, str] = MappingProxyType({})
_REFERENCE = re.compile(r"\$\{Token\[[^\]]*\]\}")


class LimitExceeded(NotDeployable, ValueError):
    """AWS would reject the stack; the message names the oversized part and its size."""


def split_variables(
    function: str, variables: Mapping[Variable, str], own: Mapping[str, str] = _NONE
) -> tuple[dict[Variable, str], dict[Variable, str]]:
    """Split a function's variables between its environment and a module in a layer.

    Args:
        function: the name of the function.
        variables: the function's variables.
        own: the user's variables, which must be in the environment.

    Raises:
        LimitExceeded: the variables that cannot be moved are too large.
    """
    kept, moved = dict(variables), dict[Variable, str]()
    tables = [each for each in TABLES & kept.keys() if kept[each] and not Token.is_unresolved(kept[each])]
    for table in sorted(tables, key=lambda each: (-len(kept[each]), each)):
        if variables_size(kept, own) <= VARIABLES_BYTES:
            break
        moved[table] = kept.pop(table)
        kept[Variable.SETTINGS_MODULE] = SETTINGS_MODULE
    size = variables_size(kept, own)
    if size > VARIABLES_BYTES:
        every = {**{each.value: value for each, value in kept.items()}, **own}
        largest = sorted(every, key=lambda each: (-len(every[each]), each))[:3]
        raise LimitExceeded(
            f"the environment variables of the function {function!r} would have {size} bytes; AWS Lambda allows"
            f" {VARIABLES_BYTES}. The largest are {', '.join(f'{each} ({len(every[each])})' for each in largest)}"
        )
    return kept, moved


def variables_size(variables: Mapping[Variable, str], own: Mapping[str, str] = _NONE) -> int:
    """Size in bytes of variables as Lambda counts them (as JSON), with unresolved names at their maximum size."""
    every = [*((each.value, value) for each, value in variables.items()), *own.items()]
    return sum(len(json.dumps(name)) + _size(value) + 2 for name, value in every) + 2


def check_limits(stack: Stack) -> None:
    """Check a stack against AWS limits.

    Raises:
        LimitExceeded: a part of the stack is too large, or there are too many resources.
    """
    resources = [each for each in stack.node.find_all() if isinstance(each, CfnResource)]
    if len(resources) > RESOURCES:
        raise LimitExceeded(
            f"the stack {stack.stack_name!r} would have {len(resources)} resources; CloudFormation allows {RESOURCES}."
            " Each of `pulled_types` is two of them"
        )
    allowed: dict[str, int] = {}
    for each in resources:
        if isinstance(each, events.CfnRule):
            _check_pattern(stack, each)
        elif isinstance(each, iam.CfnPolicy):
            for role in stack.resolve(each.roles) or ():
                name = json.dumps(role)
                allowed[name] = allowed.get(name, 0) + _size(stack.resolve(each.policy_document))
        elif isinstance(each, lambda_.CfnFunction) and (layers := len(stack.resolve(each.layers) or ())) > LAYERS:
            raise LimitExceeded(f"{each.node.path} would have {layers} layers; AWS Lambda allows {LAYERS}")
    for role, size in allowed.items():
        if size > POLICY_BYTES:
            raise LimitExceeded(
                f"the permissions of the role {role} would have {size} bytes; IAM allows {POLICY_BYTES}. Have"
                " `pulled_types` or `aws_targets` name fewer resources, or wider patterns"
            )


def _check_pattern(stack: Stack, rule: events.CfnRule) -> None:
    size = _size(stack.resolve(rule.event_pattern))
    if size > PATTERN_BYTES:
        raise LimitExceeded(
            f"the event pattern of {rule.node.path} would have {size} bytes; EventBridge allows {PATTERN_BYTES}. Have"
            " `aws_targets` name wider patterns"
        )


def _size(value: Any) -> int:  # noqa: ANN401 - a part of a template
    """Size in bytes of a value as JSON, with references at their maximum size."""
    if isinstance(value, str):
        return len(json.dumps(_REFERENCE.sub("x" * _REFERENCE_BYTES, value)))
    if isinstance(value, dict):
        if set(value) in ({"Ref"}, {"Fn::GetAtt"}, {"Fn::Select"}):
            return _REFERENCE_BYTES
        if set(value) == {"Fn::Join"}:
            return sum(map(_size, value["Fn::Join"][1]))
        return sum(len(json.dumps(key)) + _size(each) + 2 for key, each in value.items()) + 2
    if isinstance(value, list):
        return sum(_size(each) + 1 for each in value) + 2
    return len(json.dumps(value))
