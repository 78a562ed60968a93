"""Commands that are imported only when they run, because importing all commands takes longer than most runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import typer
from typer._click.exceptions import UsageError  # typer has no public name for this type
from typer.main import get_command, get_group

from duetime_client.commands.option_bundles import CommandGroup

if TYPE_CHECKING:
    # Typer has no public name for the base of its context and commands.
    from typer._click import Command


@dataclass(frozen=True, slots=True)
class DeferredCommand:
    """A command, or a group of commands.

    Attributes:
        name: the name as it is typed.
        module: the module that defines the command.
        attribute: the group's app, or the command's function.
        summary: the first line of the command's help.
        distribution: the distribution that provides the command, if it is not this distribution.
    """

    name: str
    module: str
    attribute: str
    summary: str
    distribution: str = ""

    @cache  # noqa: B019 - commands live as long as the process
    def load(self) -> Command:
        """Import the command once.

        Raises:
            UsageError: the command's distribution is not installed.
        """
        try:
            found = getattr(import_module(self.module), self.attribute)
        except ModuleNotFoundError as error:
            if not self.distribution or error.name != self.module.partition(".")[0]:
                raise
            comes_with = f"{self.name!r} comes with {self.distribution}: pip install {self.distribution}"
            raise UsageError(comes_with) from None
        if isinstance(found, typer.Typer):
            command: Command = get_group(found)
        else:
            single = CommandGroup(add_completion=False)
            single.command(self.name)(found)
            command = get_command(single)
        command.name = self.name
        return command

    def summarized(self) -> Command:
        """A placeholder with the same name and summary, for lists of commands."""
        single = typer.Typer(add_completion=False)
        single.command(self.name, help=self.summary)(lambda: None)
        return get_command(single)


_PACKAGE = "duetime_client.commands"
_SUMMARIES = {
    "tasks": "Create, follow, update and cancel tasks.",
    "dead-letters": "List, retry or delete tasks that failed after all retries.",
    "bulk": "Follow and stop bulk operations; they change all tasks that match a filter.",
    "export": "Write all of your data to a file: schedules and other definitions, and tasks with payloads.",
    "purge": "Remove all stored data of tasks, or of an owner; print what is left.",
    "links": "Create links to tasks, for people without credentials.",
    "groups": "See and close groups of tasks; cancel or retry the members of a group.",
    "locks": "See which tasks hold locks or wait for them; release a lock by force.",
    "rates": "See how rates are used and which tasks wait for them; pause, reset and pin rates.",
    "schedules": "Create and control schedules: recurring tasks.",
    "import": "Import schedules of other schedulers; the output is a file of schedules and a report of differences.",
    "calendars": "Manage calendars: times at which scheduled tasks may or may not run.",
    "types": "See the types of tasks, and set the options of their tasks.",
    "switches": "Stop or limit a type, an owner or all tasks.",
    "keys": "Manage API keys that let programs call the API; for administrators.",
    "intake-rules": "Let events create, cancel and wake tasks; for operators.",
    "signals": "Wake tasks that wait for an event.",
    "quotas": "Limit how much each owner may use, and see how much is used.",
    "secrets": "Show and change the secrets that sign HTTP calls.",
    "topologies": "Run graphs of tasks, and follow their progress.",
    "worker": "Run a pull worker on this machine.",
    "archive": "Query the tasks that TTL has removed from the table.",
    "cost": "Estimate what tasks will cost; add up what they have cost.",
    "context": "Name deployments, and choose the one that commands use.",
    "init": "Create a project: handlers with tests, settings, a CDK app and a CI workflow.",
    "deploy": "Deploy this project with the CDK: show the changes, and ask for confirmation.",
    "restore": "Restore the table to an earlier time, as a new table; report what has run since.",
    "region": "Add a standby Region, and let the other Region take over.",
    "uninstall": "Show what deleting a stack deletes and keeps; with --yes, delete the stack.",
    "template": "Write the stack as a template for Terraform, SAM and other tools.",
    "why": "Explain why a task waits or where its time went; with --schedule, why a schedule did or did not run.",
    "logs": "Print what tasks have logged and printed, from CloudWatch Logs.",
    "audit": "Print who controlled or administered what, why and from where.",
    "summary": "Show the number of tasks by type and state; the numbers are some seconds old.",
    "dispatch": "Show when the trigger last ran, and how long the queues are; for operators.",
    "doctor": "Find out what is wrong with a deployment, and what to do.",
    "mcp": "Serve the API's operations to an AI assistant; the protocol is the Model Context Protocol (MCP).",
    "verify": "Run real tasks on a deployment, and check each guarantee.",
    "watch": "Print changes as they happen: to a task, to a topology, to a schedule, or to all of your tasks.",
}
_NAMED_OTHERWISE = {
    "bulk": "bulk_operations",
    "context": "context_commands",
    "dead-letters": "dead_letters",
    "import": "imports",
    "intake-rules": "intake_rules",
}
_FUNCTIONS = {
    "deploy": "deploy",
    "init": "init",
    "template": "template",
    "why": "why",
    "logs": "show_logs",
    "restore": "restore",
    "uninstall": "uninstall",
    "audit": "audit",
    "summary": "summary",
    "export": "export",
    "purge": "purge",
    "dispatch": "dispatch",
    "doctor": "doctor",
    "mcp": "mcp",
    "verify": "verify",
    "watch": "watch",
}
"""Commands that are not groups, by name."""
_OF_THE_CONSTRUCTS = {
    "region": "duetime_cdk.region_command",
    "restore": "duetime_cdk.restore_command",
    "uninstall": "duetime_cdk.uninstall_command",
}
"""Modules of `duetime-cdk` with commands that need the core; this distribution does not import the core."""


def _command(name: str, summary: str) -> DeferredCommand:
    module, attribute = f"{_PACKAGE}.{_NAMED_OTHERWISE.get(name, name)}", _FUNCTIONS.get(name, "app")
    if name in _OF_THE_CONSTRUCTS:
        return DeferredCommand(name, _OF_THE_CONSTRUCTS[name], attribute, summary, "duetime-cdk")
    return DeferredCommand(name, module, attribute, summary)


BUILTIN = {name: _command(name, summary) for name, summary in _SUMMARIES.items()}
