"""Runs the embedded AWS, a pinned version of MiniStack, and handles its differences from AWS.

No module outside this package depends on which emulator is used.
"""

from duetime_local.emulator.errors import EmulatorFailed, EmulatorNotInstalled
from duetime_local.emulator.installation import install, is_missing
from duetime_local.emulator.server import Emulator, running

__all__ = ["Emulator", "EmulatorFailed", "EmulatorNotInstalled", "install", "is_missing", "running"]
