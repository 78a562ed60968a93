"""Tests the console's computations in Node.js for layouts, time axes, and the positions of fields in JSON text."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from infra import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONSOLE = ROOT / "console"
WORKFLOWS = ROOT.parent / "shared" / "data" / "workflows"
WIDTH, HEIGHT = 168, 32
LAYOUTS = """
import { graphOf } from "./topologies/graph";
import { layoutOf } from "./topologies/layout";
import { timeAxis } from "./topologies/time_axis";
import { placeOf } from "./topologies/json_positions";
import { readFileSync } from "node:fs";
const asked = JSON.parse(readFileSync(0, "utf8"));
const layouts = [];
for (const parents of asked.graphs ?? []) {
  const graph = graphOf(new Map(Object.entries(parents).map(([key, depends_on]) => [key, { depends_on }])));
  const started = performance.now();
  const { x, y, width, height } = await layoutOf(graph, new AbortController().signal);
  layouts.push({ keys: graph.keys, x: [...x], y: [...y], width, height, took: performance.now() - started });
}
const axes = (asked.axes ?? []).map(({ stretches, times }) => {
  const axis = timeAxis(stretches, true);
  return { places: times.map(axis.place), folds: axis.folds.length };
});
const places = (asked.texts ?? []).map(([text, field]) => {
  const place = placeOf(text, field);
  return place && [text.slice(place.start, place.end), place.line];
});
console.log(JSON.stringify({ layouts, axes, places }));
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Run the console's functions with JSON input and output."""
    node, esbuild = shutil.which("node"), CONSOLE / "node_modules" / ".bin" / "esbuild"
    if node is None or not esbuild.exists():
        pytest.skip("no Node.js, or the console's packages are not installed: `make setup`")
    bundle = tmp_path_factory.mktemp("layout") / "layout.mjs"
    options = ["--bundle", "--format=esm", "--platform=node", "--loader=ts", f"--outfile={bundle}", "--log-level=error"]
    subprocess.run([esbuild, *options], input=LAYOUTS, text=True, cwd=CONSOLE / "src", check=True)  # noqa: S603 - our own

    def ask(**what: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        text = json.dumps(what)
        done = subprocess.run([node, bundle], input=text, text=True, capture_output=True, check=True, timeout=60)  # noqa: S603 - our own
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return ask


def random_graph(seed: int, size: int) -> dict[str, list[str]]:
    """Return a graph whose nodes depend on some of the earlier nodes."""
    chance = random.Random(seed)  # noqa: S311 - a test's graphs
    near = chance.choice([3, 20, size])
    return {
        f"n{at}": sorted({f"n{chance.randrange(max(0, at - near), at)}" for _ in range(chance.randrange(4)) if at})
        for at in range(size)
    }


def recorded(path: Path) -> dict[str, list[str]]:
    """Return the graph of a recorded workflow."""
    nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"]
    return {node["id"]: node["parents"] for node in nodes}


def check(graph: dict[str, list[str]], layout: dict[str, Any]) -> None:
    """Fail if a parent is not to the left of its child, or if two nodes overlap."""
    at = dict(zip(layout["keys"], zip(layout["x"], layout["y"], strict=True), strict=True))
    assert at.keys() == graph.keys()
    for key, parents in graph.items():
        assert all(at[parent][0] + WIDTH < at[key][0] for parent in parents)
    columns: dict[float, list[float]] = {}
    for x, y in at.values():
        assert 0 <= x <= layout["width"] - WIDTH
        assert -1e-6 <= y <= layout["height"] - HEIGHT + 1e-6
        columns.setdefault(x, []).append(y)
    for heights in columns.values():
        heights.sort()
        assert all(lower - upper >= HEIGHT for upper, lower in pairwise(heights))


def test_parents_are_left_of_their_children_without_overlap(asked: Callable[..., dict[str, Any]]) -> None:
    """In any layout, parents are left of their children and nothing overlaps, even with long chains and wide levels."""
    fan: dict[str, list[str]] = {
        "a": [],
        **{f"b{at}": ["a"] for at in range(150)},
        "c": [f"b{at}" for at in range(150)],
        "d": ["a", "c"],
    }
    chain: dict[str, list[str]] = {f"n{at}": [f"n{at - 1}"] if at else [] for at in range(60)}
    loose: dict[str, list[str]] = {f"n{at}": [] for at in range(40)}
    graphs: list[dict[str, list[str]]] = [
        {"only": []},
        fan,
        chain,
        loose,
        *(random_graph(seed, 5 + seed * 9) for seed in range(12)),
    ]
    for graph, layout in zip(graphs, asked(graphs=graphs)["layouts"], strict=True):
        check(graph, layout)


@pytest.mark.skipif(not WORKFLOWS.exists(), reason="the recorded workflows are not beside the checkout")
def test_recorded_workflows_are_laid_out_compactly(asked: Callable[..., dict[str, Any]]) -> None:
    """Graphs of real workflows fit on a screen although their levels are wide, and names are still recognizable."""
    graphs = [recorded(path) for path in sorted(WORKFLOWS.glob("*.json"))]
    assert graphs
    for graph, layout in zip(graphs, asked(graphs=graphs)["layouts"], strict=True):
        check(graph, layout)
        assert layout["height"] < 1_800


def test_pauses_are_folded_and_times_keep_their_order(asked: Callable[..., dict[str, Any]]) -> None:
    """On the time axis, a short pause keeps its length, a long pause becomes a strip, and times stay in order."""
    busy = [{"start": 0, "end": 100}, {"start": 105, "end": 200}, {"start": 100_000, "end": 100_100}]
    (axis,) = asked(axes=[{"stretches": busy, "times": [0, 100, 105, 200, 50_000, 100_000, 100_100]}])["axes"]
    assert axis["folds"] == 1
    assert axis["places"] == sorted(axis["places"])
    assert axis["places"][0] == 0
    assert axis["places"][-1] == pytest.approx(1)
    assert axis["places"][5] - axis["places"][3] < 0.05


def test_a_field_is_located_in_the_text_by_its_path(asked: Callable[..., dict[str, Any]]) -> None:
    """A field is found by its path, even after text that looks like JSON; for a missing field, the parent is found."""
    text = '{\n "a": "\\"b\\": [1, {",\n "b": [\n  1,\n  {"c.d": [2]}\n ]\n}'
    places = asked(
        texts=[(text, "b[1].c.d[0]"), (text, "b.1.c.d"), (text, "b[1].x"), (text, "z"), ('{"a": [1', "a[0]")]
    )["places"]
    assert places == [["2", 5], ['"c.d": [2]', 5], ['{"c.d": [2]}', 5], None, ["1", 1]]
