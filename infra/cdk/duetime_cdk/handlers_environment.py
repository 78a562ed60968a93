"""Settings of the function that runs handlers: variables, secrets, VPC, memory, layers and policies."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.contract.tasks.target_fields import SECRET_NAME_PATTERN
from duetime.environment_variables import Variable
from duetime_cdk.errors import UnsafeEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST_MEMORY_MB, MOST_MEMORY_MB = 128, 10_240
"""Memory that a function may have (Source: AWS Lambda Developer Guide, "Lambda quotas")."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
"""Names of variables (Source: AWS Lambda API Reference, "Environment")."""
_RESERVED_PREFIXES = ("AWS_", "DUETIME_", "LAMBDA_", "POWERTOOLS_")
_RESERVED = frozenset(Variable) | {"PYTHONPATH", "PYTHONHOME"}
"""Names of variables that would change the function itself (Source: AWS Lambda Developer Guide, "Defined runtime
environment variables")."""
_TOKEN = "${Token["  # noqa: S105 - not a password
"""Prefix of a value that the CDK resolves at deployment, such as the name of a bucket of the same app."""
_SUBNET = re.compile(r"subnet-[0-9a-f]{8,17}")
_SECURITY_GROUP = re.compile(r"sg-[0-9a-f]{8,17}")
_LAYER = re.compile(r"arn:aws(-[a-z]+)*:lambda:[a-z0-9-]+:[0-9]{12}:layer:[A-Za-z0-9_-]+:[0-9]+")
_POLICY = re.compile(r"arn:aws(-[a-z]+)*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9_+=,.@/-]+")
_SECRET = re.compile(r"ssm:[A-Za-z0-9_./-]+|arn:aws(-[a-z]+)*:secretsmanager:[^*?]+|[A-Za-z0-9/_+=.@-]+")


@dataclass(frozen=True, slots=True)
class Vpc:
    """The network of the function that runs handlers."""

    subnets: tuple[str, ...]
    """Ids of private subnets, in two or more zones."""
    security_groups: tuple[str, ...]
    """Ids of the security groups of its network interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlersEnvironment:
    """The environment of handlers: the configuration of their function besides its code."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, which anyone who may read the function's configuration sees. Names that begin with `AWS_`,
    `DUETIME_`, `LAMBDA_` or `POWERTOOLS_` are reserved."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Secrets by the names that handlers use (`duetime.handlers.secret("stripe")`). Each value is a Secrets Manager
    secret's name or ARN, or `ssm:` and a parameter's name, as in `{"stripe": "prod/stripe", "mail":
    "ssm:/shop/mail-key"}`. The function may read only these secrets."""
    vpc: Vpc | None = None
    """Subnets and security groups, for handlers that use resources in a VPC."""
    memory_mb: int | None = None
    """Memory in MB; the CPU share grows with the memory. `None`: the function's memory in `sizes`."""
    layers: tuple[str, ...] = ()
    """ARNs of versions of additional Lambda layers, at most two, or one with `otlp_layer` or
    `handlers_packages`."""
    policies: tuple[str, ...] = ()
    """ARNs of managed IAM policies for the function's role, in addition to the statements in `grants.json`."""

    def check(self, where: str) -> None:
        """Check the settings of an environment.

        Args:
            where: the environment, as it is named in error messages.

        Raises:
            UnsafeEnvironment: AWS would reject the settings, or they would change duetime itself.
        """
        for name, value in self.variables.items():
            _check_variable(where, name, value)
        for name, source in self.secrets.items():
            _check_secret(where, name, source)
        if self.memory_mb is not None and not LEAST_MEMORY_MB <= self.memory_mb <= MOST_MEMORY_MB:
            raise UnsafeEnvironment(
                f"{where}: the memory of handlers must be {LEAST_MEMORY_MB} to {MOST_MEMORY_MB} MB, not"
                f" {self.memory_mb}"
            )
        if self.vpc is not None:
            _check_all(where, _SUBNET, self.vpc.subnets, "the id of a subnet, such as 'subnet-0a1b2c3d'")
            _check_all(
                where, _SECURITY_GROUP, self.vpc.security_groups, "the id of a security group, such as 'sg-0a1b2c3d'"
            )
            if not self.vpc.subnets or not self.vpc.security_groups:
                raise UnsafeEnvironment(f"{where}: a VPC needs at least one subnet and one security group")
        _check_all(where, _LAYER, self.layers, "the ARN of a layer's version, such as 'arn:aws:lambda:…:layer:NAME:1'")
        _check_all(where, _POLICY, self.policies, "the ARN of a managed policy, such as 'arn:aws:iam::aws:policy/NAME'")


def _check_variable(where: str, name: str, value: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise UnsafeEnvironment(
            f"{where}: {name!r} cannot be the name of a variable: it begins with a letter and has two or more letters,"
            " digits and underscores"
        )
    if name.startswith(_RESERVED_PREFIXES) or name in _RESERVED:
        raise UnsafeEnvironment(f"{where}: the variable {name!r} is reserved for AWS Lambda or duetime itself")
    if not isinstance(value, str):
        raise UnsafeEnvironment(f"{where}: the value of the variable {name!r} must be a string, not {value!r}")


def _check_secret(where: str, name: str, source: str) -> None:
    if re.fullmatch(SECRET_NAME_PATTERN, name) is None:
        raise UnsafeEnvironment(f"{where}: the name of the secret {name!r} may have letters, digits and _ . / - only")
    if _TOKEN not in source and _SECRET.fullmatch(source) is None:
        raise UnsafeEnvironment(
            f"{where}: the secret {name!r} needs the name or ARN of a secret in Secrets Manager, or `ssm:` and the name"
            f" of a parameter, without wildcards, not {source!r}"
        )


def _check_all(where: str, form: re.Pattern[str], values: tuple[str, ...], meaning: str) -> None:
    for value in values:
        if _TOKEN not in value and form.fullmatch(value) is None:
            raise UnsafeEnvironment(f"{where}: {value!r} is not {meaning}")
