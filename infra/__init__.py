"""Deploys this checkout: contains its settings and its CDK app; the constructs are in `infra/cdk`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The folder of the checkout."""
