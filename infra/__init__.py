"""The cloud: one construct per room, a stack that only wires them, an app that reads the environment."""

from __future__ import annotations

import os

# Node 20 is enough for everything this project does with it, and its notice would be most of what a deploy prints.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
