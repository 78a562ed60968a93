"""The settings of each environment: a preset, with what is different, such as `replace(PROD, shards=32)`."""

from __future__ import annotations

from dataclasses import replace

from duetime_cdk import DEV, LOCAL_STACK, PROD, STAGING

PULLED = {"stock.count": ("*",)}
"""The types that external workers pull, and the identities that may pull them."""

ENVIRONMENTS = {
    # For trying things out: it is deleted with everything in it, and works in a new account.
    "dev": replace(DEV, pulled_types=PULLED),
    "staging": replace(STAGING, pulled_types=PULLED),
    "prod": replace(
        PROD,
        pulled_types=PULLED,
        # Alarms go to an address that confirms the subscription.
        alarm_email="",
    ),
    "local": replace(LOCAL_STACK, pulled_types=PULLED),
}
