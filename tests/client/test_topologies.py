"""Tests the requests, the output and the exit codes of `duetime topologies`."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from duetime_client.commands.topology_levels import levels, signs
from duetime_client.commands.topology_views import Picture
from duetime_client.topologies import Topology
from tests.client.deployment import problem, served
from tests.client.graphs import GraphDeployment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]

ID = "01TASK00000000000000000000"
BODY = {"name": "nightly", "nodes": {"fetch": {"type": "get"}, "sum": {"type": "add", "depends_on": ["fetch"]}}}
SUCCEEDS: tuple[Mapping[str, Any], ...] = (
    {"nodes": {"fetch": {"state": "running"}}},
    {"percent": 50, "nodes": {"fetch": {"state": "succeeded"}, "sum": {"state": "running"}}},
    {"percent": 100, "state": "succeeded", "nodes": {"sum": {"state": "succeeded"}}},
)
FAILS: tuple[Mapping[str, Any], ...] = (
    {"nodes": {"fetch": {"state": "running"}}},
    {
        "percent": 100,
        "state": "failed",
        "error": {"type": "NodesFailed", "message": "the node fetch failed"},
        "nodes": {
            "fetch": {"state": "failed", "task_id": "01FETCH"},
            "sum": {"state": "cancelled", "reason": "stopped"},
        },
    },
)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def deployment() -> Iterator[GraphDeployment]:
    """Return a separate deployment with topologies for each test."""
    with served(GraphDeployment()) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Callable[[object], str]:
    """Return a function that writes a file and returns its path."""

    def write(content: object) -> str:
        path = tmp_path / "graph.json"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def picture(nodes: Mapping[str, Mapping[str, Any]], width: int = 80, height: int = 24, **more: object) -> list[str]:
    """Return a topology's lines as a terminal of the given size shows them."""
    filled = {
        name: {"type": "x", "state": "blocked", "trigger_rule": "all_success", **node} for name, node in nodes.items()
    }
    path = {"nodes": [], "seconds": 0.0}
    head = {"id": ID, "state": "running", "created_at": NOW, "run": 1, "on_failure": "stop", "percent": 0}
    document = {**head, "counts": {}, "critical_path": path, "nodes": filled, **more}
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    screen = Console(file=out, force_terminal=True, no_color=True, width=width, height=height, highlight=False)
    with screen.capture() as captured:
        screen.print(Picture(Topology.model_validate(document), NOW))
    return [line.rstrip() for line in plain(captured.get()).splitlines()]


def plain(text: str) -> str:
    """Return the screen's text without colors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_graph_is_sent_unchanged_and_shown(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str]
) -> None:
    """If the command does not wait, it prints the topology's picture right after the start."""
    result = duetime("topologies", "run", file(BODY))
    assert (result.exit_code, deployment.received[0].document) == (0, BODY), result.output
    assert [(request.method, request.path) for request in deployment.received] == [
        ("POST", "/stage/v1/topologies"),
        ("GET", f"/stage/v1/topologies/{ID}"),
    ]
    assert result.stdout.startswith(f"nightly  running  2.0 s  {ID}\n")


def test_waiting_for_a_graph_prints_one_final_document(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str]
) -> None:
    """The final document is printed on standard output, and the id is printed on the error stream."""
    deployment.looks.extend(SUCCEEDS)
    result = duetime("topologies", "run", file(BODY), "--wait", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["state"], document["counts"]) == (0, "succeeded", {"succeeded": 2})
    assert result.stderr == f"created {ID}\n"


@pytest.mark.parametrize("option", ["--wait", "--watch"])
def test_a_failed_graph_exits_with_code_1(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str], option: str
) -> None:
    """If nodes fail, the output names the nodes and the command that shows their errors."""
    deployment.looks.extend(FAILS)
    result = duetime("topologies", "run", file(BODY), option)
    assert result.exit_code == 1
    assert "NodesFailed: the node fetch failed\nfetch: duetime tasks get 01FETCH\n" in result.stdout
    assert "1 failed" in result.stdout
    assert "1 stopped" in result.stdout
    assert "times that" not in result.stdout


def test_without_a_terminal_each_change_is_printed_as_one_line(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str]
) -> None:
    """Without a terminal, each step is one line without escape sequences, and the final picture follows."""
    deployment.looks.extend([SUCCEEDS[0], {}, *SUCCEEDS[1:]])
    result = duetime("topologies", "run", file(BODY), "--watch")
    told = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert told[:4] == [
        "2.0 s 0% running 1 running, 1 blocked",
        "2.0 s 50% running 1 succeeded, 1 running",
        "2.0 s 100% succeeded 2 succeeded",
        f"nightly succeeded 2.0 s {ID}",
    ]
    assert "\x1b" not in result.stdout
    assert "the run took 2.00 times as long" in result.stdout


def test_watching_on_a_terminal_redraws_one_picture(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The final picture stays on the screen, and the cursor is shown again."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    deployment.looks.extend(SUCCEEDS)
    shown = duetime("topologies", "run", file(BODY), "--watch").stdout
    assert "\x1b[1A\x1b[2K" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1
    last = plain(shown.rpartition("\x1b[2K")[2]).splitlines()
    assert last[:2] == [f"nightly  succeeded  2.0 s  {ID}", "█" * 40 + " 100%"]


def test_a_topology_is_shown_watched_and_controlled(duetime: Run, deployment: GraphDeployment) -> None:
    """Each action is sent to a separate address, and the command prints the resulting topology."""
    deployment.begun(BODY, "k")
    for action in ("retry", "cancel", "pause", "resume"):
        controlled = duetime("topologies", action, ID, "--json")
        assert (controlled.exit_code, json.loads(controlled.stdout)["id"]) == (0, ID)
    assert [request.path.rpartition("/")[2] for request in deployment.received[::2]] == [
        "retry",
        "cancel",
        "pause",
        "resume",
    ]
    assert "2 blocked" in duetime("topologies", "show", ID).stdout
    deployment.looks.extend(SUCCEEDS)
    watched = duetime("topologies", "show", ID, "--watch", "--json")
    assert json.loads(watched.stdout)["state"] == "succeeded"


def test_a_topology_is_rerun_from_selected_nodes(duetime: Run, deployment: GraphDeployment) -> None:
    """Each `--node` option is sent as a node's name; without options, no nodes are sent."""
    deployment.begun(BODY, "k")
    assert duetime("topologies", "retry", ID, "--node", "a", "--node", "b", "--reason", "why").exit_code == 0
    assert deployment.received[-2].document == {"nodes": ["a", "b"], "reason": "why"}
    assert duetime("topologies", "retry", ID).exit_code == 0
    assert deployment.received[-2].body == b""


def test_topologies_are_listed_with_filters(duetime: Run, deployment: GraphDeployment) -> None:
    """Topologies are listed as a table with a row per topology or as one array; an empty list is reported."""
    assert "no topologies" in duetime("topologies", "list").stdout
    deployment.begun(BODY, "k")
    header, row = duetime(
        "topologies", "list", "--state", "running", "--name", "nightly", "--tag", "a=b"
    ).stdout.splitlines()
    assert header.split() == ["id", "state", "created", "name"]
    assert row.split()[:2] == [ID, "running"]
    assert row.split()[-1] == "nightly"
    query = {"tag": ["a:b"], "state": ["running"], "name": ["nightly"], "limit": ["51"]}
    assert deployment.received[-1].query == query
    assert [each["id"] for each in json.loads(duetime("topologies", "list", "--json").stdout)] == [ID]
    assert duetime("topologies", "list", "--tag", "nope").exit_code == 2


@pytest.mark.parametrize("command", ["show", "retry", "cancel", "pause", "resume"])
@pytest.mark.parametrize("task_id", ["nope", "../tasks", "a b\n", "é", ""])
@pytest.mark.usefixtures("deployment")
def test_an_unknown_topology_id_is_an_error_on_one_line(duetime: Run, command: str, task_id: str) -> None:
    """An id with any characters stays one path segment and raises no exception."""
    result = duetime("topologies", command, task_id)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def test_a_response_from_another_server_is_an_error(duetime: Run, deployment: GraphDeployment) -> None:
    """A response that is not a topology, and a 404 for an unknown path, are errors without a traceback."""
    deployment.scripted.append(problem(404, "path_not_found", "there is nothing here"))
    assert duetime("topologies", "show", ID).exit_code == 1
    deployment.begun(BODY, "k")
    deployment.looks.append({"state": 5})
    result = duetime("topologies", "show", ID)
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "body: is empty"),
        (b" \n", "body: is empty"),
        (b"\xff\xfe\x00\x01\x80", "body: is not JSON in UTF-8"),
        ("{", "body: is not JSON in UTF-8"),
        ("nodes: [a]", "body: is not JSON in UTF-8"),
        ("5", "nodes: should be an object"),
        ({}, "nodes: should be an object"),
        ({"nodes": {}}, "nodes: should be 1 to 10000, not 0"),
        ({"nodes": []}, "nodes: should be 1 to 10000, not 0"),
        ({"nodes": {"a": {"type": "x", "depends_on": ["a"]}}}, "nodes.a.depends_on: names the node itself"),
        ({"nodes": {"a": {"type": "x", "depends_on": ["b"]}}}, "nodes.a.depends_on: names 'b', which is not a node"),
        (
            {"nodes": {"a": {"type": "x", "depends_on": ["b"]}, "b": {"type": "x", "depends_on": ["a"]}}},
            "nodes: depend on each other in a cycle: ",
        ),
        ({"nodes": {"a": {"type": "x", "depnds_on": []}}}, "nodes.a.depnds_on: is not a field"),
        ({"nodes": {"a": {"type": "x", "due_at": "2030-01-01T00:00:00Z"}}}, "nodes.a.due_at: is not a field"),
        ({"nodes": {"a": {"type": "x"}}, "on_failure": "stop", "color": 1}, "color: is not a field"),
        ({"nodes": {"a": {"type": "x"}}, "\x1b[2J": 1}, "'\\x1b[2J': is not a field"),
        ({"nodes": {"a": {"type": "x", "\ud800": 1}}}, "nodes.a.'\\ud800': is not a field"),
        ({"nodes": {"\x1b]0;x\x07": {"type": "x"}}}, "nodes: the name '\\x1b]0;x\\x07' should be letters"),
        ({"nodes": {"a": {"type": "x", "payload": "y" * 10_485_760}}}, "body: has 10485"),
        (b"[" * 41_943_041, "body: has more than 41943040 bytes"),
        (b'{"nodes": {"a": {"type": "x", "payload": ' + b"[" * 62 + b"]" * 62 + b"}}}", "body: is nested deeper"),
        (b"[" * 100_000 + b"]" * 100_000, "body: is nested too deeply"),
        (b"9" * 5_000, "body: is not JSON in UTF-8: Exceeds the limit"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "run"])
def test_the_error_for_an_invalid_graph_file_names_file_and_field(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str], content: object, words: str, command: str
) -> None:
    """A bad file causes exit code 1, nothing is sent, and control characters in the file are escaped."""
    path = file(content)
    result = duetime("topologies", command, path)
    assert (result.exit_code, result.stdout, deployment.received) == (1, "", [])
    first, *fields = result.stderr.splitlines()
    assert first == f"error: {path} is not a valid topology"
    assert any(field.strip().startswith(words) for field in fields), fields
    assert all(line.isprintable() for line in result.stderr.splitlines())


@pytest.mark.parametrize("command", ["validate", "run"])
def test_an_unreadable_graph_file_is_a_usage_error(duetime: Run, tmp_path: Path, command: str) -> None:
    """A folder or a missing file is a usage error."""
    for path in (tmp_path, tmp_path / "missing.json"):
        result = duetime("topologies", command, str(path))
        assert result.exit_code == 2
        assert "'FILE'" in result.stderr


def test_rejections_by_the_api_are_printed_like_errors_of_the_client(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str]
) -> None:
    """For a rejection by the API, file, field and reason are printed as for errors that the client finds."""
    fault = {"field": "nodes.fetch.priority", "reason": "should be one of high, normal, low"}
    deployment.scripted.append(problem(422, "fields_invalid", "no", fault))
    path = file({"nodes": {"fetch": {"type": "x", "priority": "urgent"}}})
    result = duetime("topologies", "run", path)
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: {path} is not a valid topology\n  nodes.fetch.priority: should be one of high, normal, low\n"
    )


def test_validating_a_file_prints_its_counts_without_a_server(duetime: Run, file: Callable[[object], str]) -> None:
    """Validating a file needs no server."""
    result = duetime("topologies", "validate", file(BODY))
    assert (result.exit_code, result.stdout) == (0, "valid: 2 nodes, 1 dependency\n")


def test_a_body_of_64_levels_is_read_and_sent(
    duetime: Run, deployment: GraphDeployment, file: Callable[[object], str]
) -> None:
    """A body with 64 levels, which the API accepts, is accepted by the client, too."""
    nested = b"[" * 61 + b"]" * 61
    assert (
        duetime("topologies", "run", file(b'{"nodes": {"a": {"type": "x", "payload": ' + nested + b"}}}")).exit_code
        == 0
    )
    assert deployment.received[0].document["nodes"]["a"]["type"] == "x"


def test_a_picture_fits_its_screen() -> None:
    """Wide levels, long names and long chains fit on the screen."""
    wide: dict[str, dict[str, Any]] = {
        "top": {"state": "succeeded"},
        **{f"n{'x' * 100}{n}": {"depends_on": ["top"]} for n in range(300)},
    }
    chain: dict[str, dict[str, Any]] = {f"c{n}": {"depends_on": [f"c{n - 1}"] if n else []} for n in range(300)}
    for width, height in ((80, 24), (140, 50), (40, 10)):
        for nodes in (wide, chain):
            lines = picture(nodes, width, height)
            assert max(map(len, lines)) <= width
            assert len(lines) < height


def test_a_long_chain_is_shown_around_its_running_nodes() -> None:
    """Levels long before or after the running nodes are summarized."""
    states = ["succeeded"] * 150 + ["running"] + ["blocked"] * 149
    chain = {f"c{n}": {"depends_on": [f"c{n - 1}"] if n else [], "state": states[n]} for n in range(300)}
    lines = picture(chain)
    assert lines[2] == "   …  148 levels: 148 succeeded"
    assert lines[5].split() == ["151", "◐", "0/1", "c150"]
    assert lines[-3].startswith("   …  ")
    assert lines[-3].endswith(" blocked")


def test_a_wide_level_shows_the_share_of_each_state() -> None:
    """One failed node among three hundred nodes is still visible."""
    states = ["succeeded"] * 200 + ["running"] * 98 + ["failed", "strange"]
    drawn = signs(states, 26)
    assert drawn == [("succeeded", 16), ("failed", 1), ("running", 8), ("strange", 1)]
    assert sum(count for _, count in signs(["blocked"] * 7, 26)) == 7


def test_critical_nodes_are_marked_and_listed_first() -> None:
    """Critical nodes are marked in their level and are listed before running nodes."""
    nodes = {name: {"state": "running"} for name in "abcdef"}
    assert picture(nodes, critical_path={"nodes": ["e"], "seconds": 3.0})[2].endswith("0/6  ▸ e  a  b  +3")


def test_the_progress_bar_advances_between_two_reads() -> None:
    """Running nodes advance the bar, in a different shade, by their expected time; late nodes never count as done."""
    nodes = {
        "a": {"state": "running", "expected_seconds": 10, "started_at": NOW - timedelta(seconds=5)},
        "b": {"state": "succeeded", "expected_seconds": 10, "started_at": NOW - timedelta(seconds=9)},
    }
    assert picture(nodes, percent=50)[1] == "█" * 20 + "▒" * 10 + "░" * 10 + "  50%"
    nodes["a"] |= {"percent": 50}
    assert picture(nodes, percent=75)[1] == "█" * 30 + "░" * 10 + "  75%"
    nodes["a"] |= {"percent": 0, "started_at": NOW - timedelta(seconds=500)}
    assert picture(nodes, percent=50)[1] == "█" * 20 + "▒" * 19 + "░" + "  50%"


def test_control_characters_in_node_names_are_escaped() -> None:
    """Control characters in text from the server are escaped."""
    shown = "\n".join(picture({"a\x1b[2Jb": {"state": "odd\r"}}, name="x\x1b]0;y", requested_action="stop\x1b[2J"))
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_a_terminal_without_unicode_shows_ascii() -> None:
    """On a terminal without Unicode, the same picture is drawn in ASCII."""
    document = {
        "id": ID,
        "state": "running",
        "created_at": NOW,
        "run": 1,
        "on_failure": "stop",
        "percent": 50,
        "counts": {},
        "critical_path": {"nodes": ["a"], "seconds": 1.0},
        "nodes": {"a": {"type": "x", "state": "succeeded", "trigger_rule": "always"}},
    }
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=out, width=40).print(Picture(Topology.model_validate(document), NOW))
    out.seek(0)
    assert "   1  *  1/1  ^ a" in out.read()


def test_the_level_of_a_node_is_its_longest_path() -> None:
    """A node is on a level below all of its parents; a node with an unknown parent is left out."""
    nodes = {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["nobody"]}
    topology = {
        name: {"type": "x", "state": "blocked", "trigger_rule": "always", "depends_on": of}
        for name, of in nodes.items()
    }
    document = {"id": ID, "state": "running", "created_at": NOW, "run": 1, "on_failure": "stop", "percent": 0}
    path = {"nodes": [], "seconds": 0.0}
    made = Topology.model_validate({**document, "counts": {}, "critical_path": path, "nodes": topology})
    assert levels(made.nodes) == [["a"], ["b"], ["c"]]
