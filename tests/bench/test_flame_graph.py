"""Flame graphs of profiles."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from bench.flame_graph import svg, tree

_STACKS = [
    "<module> (bench/profiles.py:1);import (x.py:1) 50",
    "<module> (bench/profiles.py:1);repeat (bench/profiles.py:9);read (duetime/contract/a.py:3) 30",
    "<module> (bench/profiles.py:1);repeat (bench/profiles.py:9);read (duetime/contract/a.py:3);loads (json.py:1) 10",
    "<module> (bench/profiles.py:1);repeat (bench/profiles.py:9) 7",
    "<module> (bench/profiles.py:1);repeat (bench/profiles.py:9);read (duetime/a.py:3);wait (threading.py:1) 5",
]


def test_a_tree_contains_only_the_measured_work() -> None:
    """Setup, the loop and waiting functions are left out; a function's samples include its callees' samples."""
    whole = tree(_STACKS, ("repeat (",), ("wait (",))
    (read,) = whole.callees.values()
    assert (whole.samples, read.samples, {name: each.samples for name, each in read.callees.items()}) == (
        40,
        40,
        {"loads (json.py:1)": 10},
    )


def test_each_bar_shows_its_function_and_share() -> None:
    """The SVG is well-formed, and a function's share includes the samples of its callees."""
    root = ET.fromstring(svg(tree(_STACKS, ("repeat (",), ("wait (",)), "Reading <one>"))  # noqa: S314 - our own
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["Reading <one>", "read (duetime/contract/a.py:3): 100.0%", "loads (json.py:1): 25.0%"]
