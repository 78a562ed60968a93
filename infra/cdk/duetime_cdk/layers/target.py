"""Describes the target of a layer, which is a Python version and a platform."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import Literal, Self

Architecture = Literal["arm64", "x86_64"]
"""Lambda's names of its two processor architectures."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Python version and platform for which a layer's wheels and bytecode are built."""

    python: str
    """Feature version, such as `3.14`."""
    architecture: Architecture
    """The processor, as Lambda names it."""
    wheels: str | None
    """uv's name for the platform of the wheels; `None` for the machine that builds them."""

    @classmethod
    def of_lambda(cls, python: str, architecture: Architecture) -> Self:
        """Lambda's Amazon Linux 2023 with glibc 2.34, so wheels for 2.28 and older are compatible."""
        machine = "aarch64" if architecture == "arm64" else "x86_64"
        return cls(python, architecture, wheels=f"{machine}-manylinux_2_28")

    @classmethod
    def of_this_machine(cls) -> Self:
        """The machine that builds, for the embedded AWS, which runs functions with the same Python."""
        arm = platform.machine().lower() in {"arm64", "aarch64"}
        return cls(RUNNING_PYTHON, "arm64" if arm else "x86_64", wheels=None)

    @property
    def tag(self) -> str:
        """Folder name for layers of this target."""
        return f"python{self.python}-{self.wheels or f'{sys.platform}-{self.architecture}'}"


RUNNING_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Feature version of the current interpreter."""
