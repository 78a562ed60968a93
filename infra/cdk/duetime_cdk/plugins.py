"""The sub-commands that this package adds to `duetime`, imported only when they run."""

from duetime_client.commands.deferred_commands import DeferredCommand

restore = DeferredCommand(
    "restore", "duetime_cdk.restore_command", "restore", "Restore the table of a deployment to an earlier time."
)
uninstall = DeferredCommand(
    "uninstall", "duetime_cdk.uninstall_command", "uninstall", "Delete a stack; say first what is deleted and kept."
)
