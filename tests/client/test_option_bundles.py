"""Tests option bundles, which are dataclasses whose fields are options that several commands share."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from duetime_client.commands import schedules, tasks
from duetime_client.commands.option_bundles import CommandGroup, options_of, unbundled
from duetime_client.commands.task_options import TaskOptions


@dataclass(frozen=True)
class Paint:
    """A bundle of options for the tests."""

    color: Annotated[str, typer.Option(help="Which color.")]
    coats: Annotated[int, typer.Option("--layers", min=1, help="How many layers.")] = 2
    spots: Annotated[list[str] | None, typer.Option("--spot", help="A spot.")] = None


@pytest.fixture
def painted() -> list[object]:
    """Return the arguments of the command."""
    return []


@pytest.fixture
def app(painted: list[object]) -> CommandGroup:
    """Return an app with one command that takes a bundle between other parameters."""
    group = CommandGroup()

    @group.command()
    def paint(what: str, *, paint: Paint, dry_run: bool = False) -> None:
        painted.extend((what, paint, dry_run))

    return group


def test_a_command_receives_its_option_bundle(app: CommandGroup, painted: list[object]) -> None:
    """Options have the names and defaults of the bundle's fields, and list fields become repeatable options."""
    result = CliRunner().invoke(app, ["wall", "--color", "red", "--layers", "3", "--spot", "a", "--spot", "b"])
    assert result.exit_code == 0
    assert painted == ["wall", Paint("red", 3, ["a", "b"]), False]


def test_a_bundle_field_without_default_is_a_required_option(app: CommandGroup, painted: list[object]) -> None:
    """A field without a default is a required option, and the field's constraints are checked."""
    assert "--color" in CliRunner().invoke(app, ["wall"]).stderr
    assert CliRunner().invoke(app, ["wall", "--color", "red", "--layers", "0"]).exit_code == 2
    assert painted == []


@dataclass(frozen=True)
class Job:
    """A bundle that contains another bundle, for a test's command."""

    context: typer.Context
    paint: Paint


def test_a_nested_bundle_has_options(painted: list[object]) -> None:
    """A command gets both the outer and the inner bundle; if a bundle is the first parameter, its options come last."""
    group = CommandGroup()

    def work(job: Job, what: str, *, dry_run: bool = False) -> None:
        painted.extend((job.context.info_name, job.paint, what, dry_run))

    group.command()(work)
    assert CliRunner().invoke(group, ["wall", "--color", "red", "--dry-run"]).exit_code == 0
    assert painted == ["work", Paint("red", 2, None), "wall", True]
    names = [*inspect.signature(unbundled(work)).parameters]
    assert names == ["what", "dry_run", "context", "color", "coats", "spots", "help_all"]


def test_help_lists_the_options_of_a_bundle(app: CommandGroup) -> None:
    """The help lists each option of a bundle with the field's help text."""
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "--layers" in shown
    assert "How many layers." in shown


def test_two_options_with_the_same_name_are_an_error() -> None:
    """It is an error if a bundle and a parameter have the same option, or one would silently replace the other."""

    def command(color: str, *, paint: Paint) -> None:
        """Take the same option twice."""

    with pytest.raises(ValueError, match="duplicate parameter name"):
        unbundled(command)


@pytest.mark.parametrize("command", [tasks.create, tasks.update, schedules.create, schedules.update])
def test_the_commands_on_tasks_and_schedules_share_the_options_of_a_task(command: object) -> None:
    """A field that is added to the shared task options is an option of all four commands."""
    bundle = {each.name for each in options_of(TaskOptions)}
    assert bundle <= set(unbundled(command).__annotations__)  # type: ignore[arg-type]  # a function
