"""Removal policies of stateful resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment


def removal_of(environment: Environment) -> RemovalPolicy:
    """Kept where the environment protects it, unless its own first deploy fails: then nothing is in it yet."""
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if environment.protected else RemovalPolicy.DESTROY
