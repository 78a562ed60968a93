"""The settings of each environment: a preset, with changes such as `replace(PROD, shards=32)`."""

from __future__ import annotations

from dataclasses import replace

from duetime_cdk import DEV, LOCAL_STACK, PROD, STAGING

ENVIRONMENTS = {
    # For experiments: works in a new account, and deleting the stack deletes all its data.
    "dev": DEV,
    "staging": STAGING,
    "prod": replace(
        PROD,
        # Alarms are sent to this address after its owner confirms the subscription.
        alarm_email="",
    ),
    "local": LOCAL_STACK,
}
