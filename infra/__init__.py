"""Contains this checkout's settings, and the CDK app that deploys the checkout; the constructs are in `infra/cdk`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The folder of the checkout."""
