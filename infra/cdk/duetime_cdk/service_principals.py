"""Principals for AWS services that may assume roles of the stack."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam


def service_of_this_account(service: str) -> iam.PrincipalWithConditions:
    """A service that acts for a resource of this account.

    Without the condition, a resource in another account could make the service assume the role ("confused deputy"). Do
    not use this principal for Lambda, which names no source account when it assumes a function's role.
    """
    conditions = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    return iam.PrincipalWithConditions(iam.ServicePrincipal(service), conditions)
