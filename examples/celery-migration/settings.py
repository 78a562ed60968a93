"""The settings of each environment: a preset, with what is different, such as `replace(PROD, shards=32)`."""

from __future__ import annotations

from dataclasses import replace

from duetime_cdk import DEV, LOCAL_STACK, PROD, STAGING

ENVIRONMENTS = {
    # For trying things out: it is deleted with everything in it, and works in a new account.
    "dev": DEV,
    "staging": STAGING,
    "prod": replace(
        PROD,
        # Alarms go to an address that confirms the subscription.
        alarm_email="",
    ),
    "local": LOCAL_STACK,
}
