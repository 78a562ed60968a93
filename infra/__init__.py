"""The deployment of this checkout: its settings, and the CDK app that deploys it; the constructs are in `infra/cdk`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The folder of the checkout."""
