"""The settings of each environment, which are a preset with changes such as `replace(PROD, shards=32)`."""

from __future__ import annotations

from dataclasses import replace

from duetime_cdk import DEV, LOCAL_STACK, PROD, STAGING

PULLED = {"stock.count": ("*",)}
"""The task types that external workers pull, and the identities that may pull each type."""

ENVIRONMENTS = {
    # This environment is for experiments: it works in a new account, and deleting the stack deletes all of its data.
    "dev": replace(DEV, pulled_types=PULLED),
    "staging": replace(STAGING, pulled_types=PULLED),
    "prod": replace(
        PROD,
        pulled_types=PULLED,
        # Alarms are sent to this address after its owner confirms the subscription.
        alarm_email="",
    ),
    "local": replace(LOCAL_STACK, pulled_types=PULLED),
}
