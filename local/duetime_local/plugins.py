"""Lists the subcommands that this package adds to `duetime`; each subcommand is imported only when it runs."""

from duetime_client.commands.deferred_commands import DeferredCommand

dev = DeferredCommand("dev", "duetime_local.dev", "dev", "Run the stack on this machine, and reload saved handlers.")
local = DeferredCommand(
    "local", "duetime_local.commands", "app", "Run the complete stack on this machine in an embedded AWS."
)
