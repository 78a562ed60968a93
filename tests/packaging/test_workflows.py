"""Tests that workflows in this repository and in new projects can be parsed, and that their commands exist."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from duetime_client.commands.app import app
from duetime_client.new_project import Pipeline, create_project, project_files
from infra import ROOT
from tests.docs.test_commands import check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = ".github/workflows"
ROLES = PurePosixPath("deploy/github-roles.yaml")
PROJECT = project_files("web-shop", Pipeline.GITHUB)
OWN = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / FOLDER).glob("*.yml")}
WORKFLOWS = OWN | {f"project/{path.name}": text for path, text in PROJECT.items() if str(path.parent) == FOLDER}
ISSUES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def roles_template() -> dict[str, Any]:
    """Return the template for GitHub's roles."""
    # The module is imported here because every pytest-xdist process collects these tests and the import takes half a
    # second.
    from cfnlint import decode  # type: ignore[import-untyped]  # noqa: PLC0415

    template: dict[str, Any] = decode.decode_str(PROJECT[ROLES])[0]
    return template


def jobs_of(text: str) -> dict[str, Any]:
    """Return a workflow's jobs."""
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return jobs


def commands_of(text: str) -> Iterator[list[str]]:
    """Return all steps' command lines, as words and without `uv run`."""
    for job in jobs_of(text).values():
        for line in (line for step in job["steps"] for line in step.get("run", "").splitlines()):
            words = shlex.split(re.sub(r"\$\{\{[^}]*\}\}", "dev", line))
            yield words[2:] if words[:2] == ["uv", "run"] else words


def test_the_expected_workflows_exist() -> None:
    """The repository has workflows for tests, synthesis and releases, and the template has workflows for projects."""
    assert sorted(WORKFLOWS) == ["project/ci.yml", "project/deploy.yml", "release.yml", "synth.yml", "test.yml"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflow_jobs_are_complete(name: str) -> None:
    """Each job has a machine and steps, waits for jobs that exist, and uses actions with a version."""
    jobs = jobs_of(WORKFLOWS[name])
    for job in jobs.values():
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= set(jobs)
        assert job["runs-on"] == "ubuntu-latest"
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"[\w./-]+@(v\d+|release/v\d+)", each) for each in used)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_have_minimal_permissions(name: str) -> None:
    """By default, a workflow may only read contents and request an identity token, and no job reads a stored secret."""
    workflow = yaml.safe_load(WORKFLOWS[name])
    assert workflow["permissions"].items() <= {"contents": "read", "id-token": "write"}.items()
    assert "secrets." not in WORKFLOWS[name]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_command_in_a_workflow_exists(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets of `make`, `duetime` commands with their options, and tools that the project installs exist."""
    monkeypatch.setenv("DUETIME_URL", "https://api.example.org")
    monkeypatch.chdir(tmp_path)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    dev = tomllib.loads(PROJECT[PurePosixPath("pyproject.toml")])["dependency-groups"]["dev"]
    for program, *arguments in commands_of(WORKFLOWS[name]):
        if program == "make":
            assert arguments[0] in targets
        elif program == "duetime":
            check(arguments, whole=True)
        elif name.startswith("project/"):
            assert program in {"uv", "npm", "npx", "pytest"} or program in dev
        else:
            assert program in {"npx", "test", "echo", "gh", ".venv/bin/uv"}


def test_a_wrong_command_in_a_workflow_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check reports a wrong command."""
    wrong = {"project/deploy.yml": PROJECT[PurePosixPath(FOLDER, "deploy.yml")].replace("--yes", "--sure")}
    monkeypatch.setattr(f"{__name__}.WORKFLOWS", wrong)
    with pytest.raises(Exception, match="--sure"):
        test_every_command_in_a_workflow_exists("project/deploy.yml", tmp_path, monkeypatch)


def test_prod_is_deployed_after_dev_and_an_approval() -> None:
    """A deployment needs an approval by GitHub's environment, and the changes are shown before the approval."""
    jobs = jobs_of(WORKFLOWS["project/deploy.yml"])
    assert jobs["prod"]["environment"] == "prod"
    assert set(jobs["prod"]["needs"]) == {"diff", "dev"}
    assert "environment" not in jobs["diff"]


def test_only_one_job_of_a_release_has_an_identity() -> None:
    """The job with an identity runs no code from the checkout, and only uploads what another job has built."""
    jobs = jobs_of(WORKFLOWS["release.yml"])
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert jobs["publish"]["needs"] == "build"
    assert [step["uses"].partition("@")[0] for step in jobs["publish"]["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]


@pytest.mark.slow
def test_the_roles_are_a_valid_template() -> None:
    """CloudFormation's schemas accept the template for the roles; informational findings (I) are not errors."""
    from cfnlint.api import lint_all  # type: ignore[import-untyped]  # noqa: PLC0415 - as in `roles_template`

    assert [found for found in lint_all(PROJECT[ROLES]) if not found.rule.id.startswith("I")] == []


def test_the_roles_have_only_the_permissions_of_the_commands() -> None:
    """One role can only use the CDK's lookup role; the deploying role also has the permissions for `duetime deploy`."""
    template = roles_template()
    allowed = {
        name: {action for statement in _statements(template, name) for action in _listed(statement["Action"])}
        for name in ("DiffRole", "DeployRole")
    }
    assert allowed["DiffRole"] == {"sts:AssumeRole"}
    assert allowed["DeployRole"] == {
        "cloudformation:DeleteChangeSet",
        "cloudformation:DescribeChangeSet",
        "cloudformation:DescribeStacks",
        "execute-api:Invoke",
        "lambda:GetFunctionConfiguration",
        "logs:FilterLogEvents",
        "sts:AssumeRole",
    }
    (diff,) = _statements(template, "DiffRole")
    assert "-lookup-role-" in diff["Resource"]["Fn::Sub"]


def test_the_roles_trust_only_one_repository() -> None:
    """Each role trusts only the repository's environment or branch, and compares the complete name exactly."""
    template = roles_template()
    for name, subject in (
        ("DiffRole", "repo:${Repository}:ref:refs/heads/${Branch}"),
        ("DeployRole", "repo:${Repository}:environment:${Environment}"),
    ):
        (statement,) = template["Resources"][name]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        compared = statement["Condition"]["StringEquals"]
        assert compared["token.actions.githubusercontent.com:sub"] == {"Fn::Sub": subject}
        assert compared["token.actions.githubusercontent.com:aud"] == "sts.amazonaws.com"


def test_a_project_has_a_pipeline_only_if_requested(tmp_path: Path) -> None:
    """`duetime init --ci github` adds two files to the files that every project has."""
    create_project(tmp_path / "plain")
    done = CliRunner().invoke(app, ["init", str(tmp_path / "piped"), "--ci", "github"])
    assert done.exit_code == 0, done.output
    plain, piped = (
        {path.relative_to(folder).as_posix().replace(folder.name, "") for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "plain", tmp_path / "piped")
    )
    assert piped - plain == {str(ROLES), f"{FOLDER}/deploy.yml"}
    assert plain < piped
    assert "@PROJECT@" not in (tmp_path / "piped" / ROLES).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ISSUES, ids=lambda path: path.name)
def test_the_issue_forms_are_complete(path: Path) -> None:
    """Each field in an issue form has a unique id and a label."""
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    fields = [each for each in form.get("body", []) if each["type"] != "markdown"]
    assert len({each["id"] for each in fields}) == len(fields)
    assert all(each["attributes"]["label"] for each in fields)


def _statements(template: Any, role: str) -> list[dict[str, Any]]:  # noqa: ANN401 - YAML of CloudFormation
    policies = template["Resources"][role]["Properties"]["Policies"]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
