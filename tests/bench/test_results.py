"""Tests the files that `make bench` writes, and the rule for regressions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.paired_timing import Comparison
from bench.results import Worsening, document, keep, key_of, read, worsenings, write

if TYPE_CHECKING:
    from pathlib import Path

START = Comparison("start worker", "start boto3 with one client", 1.25, 1.1, 1.4, 0.5)


def test_written_figures_are_read_back(tmp_path: Path) -> None:
    """Each ratio and each counted figure has a flat key for programs and a row in the table for readers."""
    figures = document([START], {"write_units_per_task": 4.0})
    write(tmp_path, figures, [START])
    assert read(tmp_path) == json.loads(json.dumps(figures))
    assert (figures["start_worker"], figures["write_units_per_task"]) == (1.25, 4.0)
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| `start_worker` | start worker | start boto3 with one client | 1.25 | 1.10 | 1.40 | 0.5000 |" in page
    assert "| `write_units_per_task` | 4.0 |" in page


def test_figures_of_another_command_replace_only_its_earlier_figures(tmp_path: Path) -> None:
    """Another command's figures replace only its own earlier figures, and an unlisted key is refused by name."""
    write(tmp_path, document([START], {"lateness_p99_ms": 9.0}), [START])
    keep(tmp_path, {"lateness_p99_ms": 1.0})
    assert {key: read(tmp_path)[key] for key in ("lateness_p99_ms", "start_worker")} == {
        "lateness_p99_ms": 1.0,
        "start_worker": 1.25,
    }
    with pytest.raises(KeyError, match="lateness_p98_ms"):
        keep(tmp_path, {"lateness_p98_ms": 1.0})


def test_without_committed_figures_no_figure_is_worse(tmp_path: Path) -> None:
    """If no figures are committed, no figure counts as worse."""
    assert list(worsenings(read(tmp_path), document([START], {}))) == []


def test_only_changes_beyond_noise_count_as_worse() -> None:
    """A counted figure may not grow, but a ratio may grow slightly beyond the slowest earlier pair."""
    before = document([START], {"write_units_per_task": 4.0})
    noisy = {**before, "start_worker": 1.6}
    assert list(worsenings(before, noisy)) == []
    worse = {**before, "start_worker": 1.7, "write_units_per_task": 4.1}
    assert list(worsenings(before, worse)) == [
        Worsening("write_units_per_task", 4.0, 4.1),
        Worsening("start_worker", 1.25, 1.7),
    ]


def test_names_with_special_characters_become_plain_keys() -> None:
    """Names with special characters become keys that any program can read."""
    assert key_of(Comparison("120 occurrences of */5, with a key", "", 1, 1, 1, 1)) == "120_occurrences_of_5_with_a_key"


def test_figures_of_another_command_are_listed_with_it(tmp_path: Path) -> None:
    """A figure that is measured by another command is listed under that command and not among the counted figures."""
    figures = document([START], {"write_units_per_task": 4.0, "requests_vs_celery": 0.82})
    write(tmp_path, figures, [START])
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| `requests_vs_celery` | 0.82 | `python -m bench.celery_comparison` |" in page
    assert "| `requests_vs_celery` | 0.82 |\n" not in page
