"""Version of the contract, independent of the package's: the package may change while the contract does not."""

from __future__ import annotations

CONTRACT_VERSION = "1.0.0"
