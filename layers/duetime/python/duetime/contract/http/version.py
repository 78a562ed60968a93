"""The version of the contract, which moves by itself: the package may change while the contract does not."""

from __future__ import annotations

CONTRACT_VERSION = "1.0.0"
