"""The embedded AWS: MiniStack, pinned, and everything that differs between it and AWS.

No other module of the project knows which emulator it is.
"""

from duetime_local.emulator.errors import EmulatorFailed, EmulatorNotInstalled
from duetime_local.emulator.installation import install, is_missing
from duetime_local.emulator.server import Emulator, running

__all__ = ["Emulator", "EmulatorFailed", "EmulatorNotInstalled", "install", "is_missing", "running"]
