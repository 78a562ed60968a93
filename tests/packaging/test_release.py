"""`make release`: the versions, the notes, and the obstacles to tagging a version."""

from __future__ import annotations

import tomllib

import pytest

from infra import ROOT, release
from infra.release import (
    PACKAGES,
    NotReleasable,
    Section,
    has_source_distribution,
    reasons_not_to_tag,
    section_of,
    version,
)

CHANGELOG = """# Changelog

## 0.2.0: not released yet

### Tasks

- New.

## 0.1.0: 2026-12-01

- First.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    """With its own headings, and nothing of other versions; a missing section means no notes."""
    assert section_of(CHANGELOG, "0.2.0") == Section("not released yet", "### Tasks\n\n- New.\n")
    assert section_of(CHANGELOG, "0.1.0") == Section("2026-12-01", "- First.\n")
    with pytest.raises(NotReleasable, match=r"no section of version 0\.3\.0"):
        section_of(CHANGELOG, "0.3.0")


def test_the_changelog_has_a_section_of_this_version() -> None:
    """Otherwise the release would have no notes."""
    assert "### Tasks" in section_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version()).text


def test_a_version_is_tagged_with_a_date_only_once_and_as_committed() -> None:
    """Each reason is named, and a dated section of a clean checkout has none."""
    assert reasons_not_to_tag("0.1.0", Section("2026-12-01", ""), "", ["v0.0.9"]) == []
    assert len(reasons_not_to_tag("0.1.0", Section("not released yet", ""), " M Makefile", ["v0.1.0"])) == 3


def test_nothing_is_built_for_a_tag_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The obstacles are checked first, because the build takes minutes."""
    monkeypatch.setattr(release, "_git", lambda *arguments: " M Makefile" if arguments[0] == "status" else "")
    monkeypatch.setattr(release, "build", lambda: pytest.fail("built"))
    with pytest.raises(NotReleasable, match="not committed"):
        release.release(["3.11"], tags=True, needs_all=True)


def test_every_python_of_a_release_has_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a version would be published without a test on it."""
    monkeypatch.setattr(release, "_git", lambda *_: "")
    monkeypatch.setattr(release, "build", lambda: pytest.fail("built"))
    with pytest.raises(NotReleasable, match=r"not installed: Python 3\.99"):
        release.release(["3.99"], tags=False, needs_all=True)


def test_the_checked_pythons_are_those_that_the_distributions_allow() -> None:
    """From the oldest one of `requires-python`, which all distributions have."""
    oldest = {release.project_of(folder)["project"]["requires-python"] for folder in PACKAGES}
    assert oldest == {f">={release.PYTHONS[0]}"}


def test_distributions_with_files_from_elsewhere_are_wheels_only() -> None:
    """A wheel could not be built from their source distribution."""
    assert [folder for folder in PACKAGES if not has_source_distribution(folder)] == ["testing", "infra/cdk"]


def test_the_example_depends_on_this_version() -> None:
    """Its requirements are changed with the version."""
    shop = tomllib.loads((ROOT / "examples" / "shop" / "pyproject.toml").read_text(encoding="utf-8"))
    listed = [*shop["project"]["dependencies"], *shop["dependency-groups"]["dev"]]
    ours = [each for each in listed if each.startswith("duetime")]
    assert len(ours) == 5
    assert all(each.endswith(f"=={version()}") for each in ours)
