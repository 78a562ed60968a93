"""Tests the versions and notes of `make release`, and the reasons that prevent tagging a version."""

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


def test_the_release_notes_are_the_section_of_the_version() -> None:
    """A version's notes have its headings and no other version's text; a missing section is an error."""
    assert section_of(CHANGELOG, "0.2.0") == Section("not released yet", "### Tasks\n\n- New.\n")
    assert section_of(CHANGELOG, "0.1.0") == Section("2026-12-01", "- First.\n")
    with pytest.raises(NotReleasable, match=r"no section of version 0\.3\.0"):
        section_of(CHANGELOG, "0.3.0")


def test_the_changelog_has_a_section_of_this_version() -> None:
    """The changelog has a section for this version, because the release would have no notes otherwise."""
    assert "### Tasks" in section_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version()).text


def test_each_reason_against_a_tag_is_reported() -> None:
    """Each reason against a tag is reported, and there is no such reason for a dated section in a clean checkout."""
    assert reasons_not_to_tag("0.1.0", Section("2026-12-01", ""), "", ["v0.0.9"]) == []
    assert len(reasons_not_to_tag("0.1.0", Section("not released yet", ""), " M Makefile", ["v0.1.0"])) == 3


def test_nothing_is_built_for_a_rejected_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reasons against a tag are checked first, because the build takes minutes."""
    monkeypatch.setattr(release, "_git", lambda *arguments: " M Makefile" if arguments[0] == "status" else "")
    monkeypatch.setattr(release, "build", lambda: pytest.fail("built"))
    with pytest.raises(NotReleasable, match="not committed"):
        release.release(["3.11"], tags=True, needs_all=True)


def test_a_release_requires_every_supported_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release is refused unless every supported Python is installed, because a missing Python would not be tested."""
    monkeypatch.setattr(release, "_git", lambda *_: "")
    monkeypatch.setattr(release, "build", lambda: pytest.fail("built"))
    with pytest.raises(NotReleasable, match=r"not installed: Python 3\.99"):
        release.release(["3.99"], tags=False, needs_all=True)


def test_the_checked_pythons_start_with_the_oldest_supported_python() -> None:
    """The tested Pythons start with the oldest version in `requires-python`, which is the same in all distributions."""
    oldest = {release.project_of(folder)["project"]["requires-python"] for folder in PACKAGES}
    assert oldest == {f">={release.PYTHONS[0]}"}


def test_distributions_with_external_files_are_released_only_as_wheels() -> None:
    """Distributions whose source distributions could not build wheels are released only as wheels."""
    assert [folder for folder in PACKAGES if not has_source_distribution(folder)] == ["testing", "infra/cdk"]


def test_the_requirements_of_the_example_have_this_version() -> None:
    """The shop example requires exactly this version of each distribution that it uses."""
    shop = tomllib.loads((ROOT / "examples" / "shop" / "pyproject.toml").read_text(encoding="utf-8"))
    listed = [*shop["project"]["dependencies"], *shop["dependency-groups"]["dev"]]
    ours = [each for each in listed if each.startswith("duetime")]
    assert len(ours) == 5
    assert all(each.endswith(f"=={version()}") for each in ours)
