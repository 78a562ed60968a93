"""The embedded AWS: MiniStack, pinned, and everything that differs between it and AWS.

No other module of the project knows which emulator it is.
"""

from local.emulator.errors import EmulatorFailed, EmulatorNotInstalled
from local.emulator.server import Emulator, running

__all__ = ["Emulator", "EmulatorFailed", "EmulatorNotInstalled", "running"]
