"""The settings of each environment, which are a preset with changes such as `replace(PROD, shards=32)`."""

from __future__ import annotations

from dataclasses import replace

from duetime_cdk import DEV, LOCAL_STACK, PROD, STAGING

ENVIRONMENTS = {
    # This environment is for experiments: it works in a new account, and deleting the stack deletes all of its data.
    "dev": DEV,
    "staging": STAGING,
    "prod": replace(
        PROD,
        # Alarms are sent to this address after its owner confirms the subscription.
        alarm_email="",
    ),
    "local": LOCAL_STACK,
}
