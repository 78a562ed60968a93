"""Tests topologies in a browser, with a run's graph, times and table, skipped nodes, and creating a topology."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from tests.scenarios.scenario import MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from tests.console.conftest import Console
    from tests.console.world import World

pytestmark = pytest.mark.slow

LATER = 7_200
HOSTILE = """<img src=x onerror="document.title='hit'">"""
NODES: dict[str, dict[str, Any]] = {
    "fetch": {"type": PLAIN},
    "left": {"type": PLAIN, "depends_on": ["fetch"]},
    "right": {"type": PLAIN, "payload": {"check": True}, "depends_on": ["fetch"], "retry": {"max_attempts": 1}},
    "report": {"type": PLAIN, "depends_on": ["left", "right"]},
    "alarm": {"type": PLAIN, "depends_on": ["left"], "trigger_rule": "one_failed"},
    "tidy": {"type": PLAIN, "depends_on": ["report"], "trigger_rule": "all_done"},
}
NODE_ROWS = ".node-table tbody tr"


class Bad(Exception):
    """The exception that the tests' target raises."""


class Ledger:
    """A state that the tests' targets check, and that is broken until a test repairs it."""

    is_broken = True

    def act(self, _phase: str, _context: object, payload: object) -> str:
        """Fail nodes that check the ledger while it is broken."""
        if self.is_broken and isinstance(payload, dict) and payload.get("check"):
            raise Bad(HOSTILE)
        return "done"


@pytest.fixture
def ledger(world: World) -> Ledger:
    """Return an account whose node `right` fails."""
    made = Ledger()
    world.do(lambda live: setattr(live, "act", made.act))
    return made


def create(world: World, nodes: dict[str, dict[str, Any]], **fields: Any) -> str:  # noqa: ANN401 - any JSON
    """Create a topology and return its id."""
    return str(world.ask("POST", "/v1/topologies", {"nodes": nodes, **fields})["id"])


def test_a_graph_runs_fails_and_is_retried(console: Console, world: World, ledger: Ledger) -> None:
    """The page follows a run to its failure and explains a skipped node; retrying the failed nodes succeeds."""
    large = {"type": PLAIN, "depends_on": ["left"], "when": "parents.left.result == 'large'"}
    nodes = NODES | {"large": large}
    topology = create(world, nodes, name=HOSTILE, on_failure="continue", delay_seconds=5)
    page = console.open(f"/topologies/{topology}")
    expect(page.locator(".live")).to_have_text("Live")
    expect(page.locator(".topology-progress .chip")).to_have_text(["blocked 7"])
    world.run(30 * SECOND)
    expect(page.locator("h1 .chip")).to_have_text("failed")
    expect(page.locator(".topology-progress .chip")).to_have_text(
        ["succeeded 3", "failed 1", "upstream failed 1", "skipped 2"]
    )
    panel = page.locator(".node-panel")
    page.get_by_role("button", name="Show node right").click()
    expect(panel.locator("h2")).to_have_text("right")
    page.get_by_role("button", name="Nodes", exact=True).click()
    expect(page.locator(NODE_ROWS)).to_have_count(7)
    page.get_by_role("button", name="alarm").click()
    expect(panel.locator(".node-why")).to_have_text("Skipped: it only runs if a parent fails, and no parent did.")
    page.get_by_role("button", name="large").click()
    expect(panel.locator(".node-why")).to_have_text("Skipped: its condition parents.left.result == 'large' was false.")
    page.get_by_role("button", name="report").first.click()
    expect(panel.locator(".node-why")).to_contain_text("right failed, so its trigger rule all_success")
    panel.get_by_role("button", name="right").click()
    expect(panel.locator(".node-error")).to_contain_text("onerror")
    page.go_back()
    expect(panel.locator("h2")).to_have_text("report")

    ledger.is_broken = False
    page.get_by_role("button", name="Retry failed nodes").click()
    page.get_by_label("Reason").fill("the ledger is fixed")
    page.locator("dialog").get_by_role("button", name="Retry failed nodes").click()
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text(f"duetime topologies retry {topology}")
    expect(page.locator(".last-call")).to_contain_text("curl -X POST")
    world.run(60 * SECOND)
    expect(page.locator("h1 .chip")).to_have_text("succeeded")
    expect(page.locator(".topology-progress .chip")).to_have_text(["succeeded 5", "skipped 2"])
    assert "hit" not in page.title()


@pytest.mark.usefixtures("ledger")
def test_a_failed_run_opens_at_the_failed_node(console: Console, world: World) -> None:
    """The failed node's panel shows the error; a closed panel stays closed, and another node's link opens that node."""
    topology = create(world, NODES, on_failure="continue")
    world.run(60 * SECOND)
    page = console.open(f"/topologies/{topology}")
    panel = page.locator(".node-panel")
    expect(panel.locator("h2")).to_have_text("right")
    expect(panel.locator(".node-error")).to_contain_text("onerror")
    panel.get_by_role("button", name="Close the node").click()
    expect(panel).to_have_count(0)
    page.get_by_role("button", name="Show node right").click()
    expect(panel.locator("h2")).to_have_text("right")
    page = console.open(f"/topologies/{topology}?node=left")
    expect(page.locator(".node-panel h2")).to_have_text("left")


def test_a_user_approves_a_node(console: Console, world: World) -> None:
    """Only nodes that wait for an approval offer to approve; then the graph continues, and the command is shown."""
    approve = {"type": "release", "target": {"kind": "approval"}, "depends_on": ["fetch"]}
    topology = create(world, {"fetch": {"type": PLAIN}, "approve": approve})
    world.run(60 * SECOND)
    page = console.open(f"/topologies/{topology}?node=fetch")
    panel = page.locator(".node-panel")
    expect(panel.get_by_role("button", name="Roll back")).to_be_visible()
    expect(panel.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    task_id = world.ask("GET", f"/v1/topologies/{topology}")["nodes"]["approve"]["task_id"]
    world.do(lambda live: live.topologies.signalled.add((task_id, True)))
    page = console.open(f"/topologies/{topology}?node=approve")
    page.locator(".node-panel").get_by_role("button", name="Approve", exact=True).click()
    page.get_by_label("Reason").fill("checked")
    page.locator("dialog").get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime tasks approve")
    world.run(60 * SECOND)
    expect(page.locator("h1 .chip")).to_have_text("succeeded")


def test_a_user_sends_the_signal_that_a_node_waits_for(console: Console, world: World) -> None:
    """Only nodes that wait for an event offer to send it; then the graph continues, and the command is shown."""
    target = {"kind": "wait_for_event", "event": "order.paid", "key": "o-17"}
    topology = create(world, {"fetch": {"type": PLAIN}, "paid": {"type": "payment", "target": target}})
    world.run(60 * SECOND)
    page = console.open(f"/topologies/{topology}?node=fetch")
    expect(page.locator(".node-panel").get_by_role("button", name="Roll back")).to_be_visible()
    expect(page.locator(".node-panel").get_by_role("button", name="Send the signal…")).to_have_count(0)
    page = console.open(f"/topologies/{topology}?node=paid")
    page.locator(".node-panel").get_by_role("button", name="Send the signal…").click()
    page.get_by_label("Payload").fill('{"amount": 17}')
    page.locator("dialog").get_by_role("button", name="Send", exact=True).click()
    page.get_by_role("button", name="As a command").click()
    expect(page.locator(".last-call")).to_contain_text("duetime signals send order.paid --key o-17")
    world.run(60 * SECOND)
    expect(page.locator("h1 .chip")).to_have_text("succeeded")


def test_a_postponed_approval_offers_no_decision(console: Console, world: World) -> None:
    """When a task is moved to a later time, its approval is hidden at once, because the API would refuse a decision."""
    task_id = world.ask("POST", "/v1/tasks", {"type": "release", "target": {"kind": "approval"}})["id"]
    world.run(60 * SECOND)
    page = console.open(f"/tasks/{task_id}")
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    world.ask("PATCH", f"/v1/tasks/{task_id}", {"delay_seconds": 3_600})
    expect(approve).to_be_hidden()


def test_a_user_without_credentials_approves_with_a_link(console: Console, world: World) -> None:
    """The dialog shows a link to a page that decides; the page has no axe violations on a phone and in both themes."""
    task_id = world.ask("POST", "/v1/tasks", {"type": "release", "target": {"kind": "approval"}})["id"]
    world.run(60 * SECOND)
    world.do(lambda live: live.topologies.signalled.add((task_id, True)))
    page = console.open(f"/tasks/{task_id}")
    page.get_by_role("button", name="Create a link…").click()
    page.get_by_label("Message").fill("Publish release 17?")
    page.locator("dialog").get_by_role("button", name="Create").click()
    address = page.locator("dialog code.key").inner_text()
    console.check_accessibility(page)
    url = f"{urljoin(world.url, '/')}{address.partition('.org/')[2]}"
    for scheme in ("light", "dark"):
        opened = console.open(narrow=True, scheme=scheme)
        opened.goto(url)
        expect(opened.get_by_role("heading")).to_have_text("Publish release 17?")
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
        console.check_accessibility(opened)
    opened.get_by_label("Reason").fill("tested")
    opened.get_by_role("button", name="Approve").click()
    expect(opened.get_by_role("heading")).to_have_text("Approved")
    assert world.ask("GET", f"/v1/tasks/{task_id}")["state"] == "succeeded"


@pytest.mark.slow
def test_changes_of_a_graph_during_a_lost_connection_are_shown(console: Console, world: World) -> None:
    """Changes that were missed during a lost connection are read after reconnecting, also in the list of topologies."""
    console.expected = ("Failed to load resource", "WebSocket connection to")
    topology = create(world, {name: NODES[name] for name in ("fetch", "left")}, delay_seconds=5)
    page, listed = (
        console.open(f"/topologies/{topology}"),
        console.open("/topologies?q=state:scheduled state:succeeded"),
    )
    expect(page.locator(".live")).to_have_text("Live")
    expect(listed.locator("tr[data-row] .chip")).to_have_text(["scheduled"])
    world.down = True
    world.cut_off()
    expect(page.locator(".live")).to_have_text("Every 30 s")
    world.run(30 * SECOND)
    expect(page.locator(".topology-progress .chip")).to_have_text(["blocked 2"])
    world.down = False
    expect(page.locator(".topology-progress .chip")).to_have_text(["succeeded 2"])
    expect(page.locator("h1 .chip")).to_have_text("succeeded")
    expect(listed.locator("tr[data-row] .chip")).to_have_text(["succeeded"])


@pytest.mark.usefixtures("ledger")
def test_a_rollback_is_shown_in_its_order(console: Console, world: World) -> None:
    """The nodes that ran are listed from last to first, in the order of an actual or possible rollback."""
    chain: dict[str, dict[str, Any]] = {"first": {"type": PLAIN}, "second": {"type": PLAIN, "depends_on": ["first"]}}
    topology = create(world, chain, on_failure="rollback")
    world.run(60 * SECOND)
    page = console.open(f"/topologies/{topology}")
    page.get_by_text("Order of the rollback").click()
    expect(page.locator(".rollback li .link")).to_have_text(["second", "first"])


def test_a_nested_topology_is_opened_from_its_node(console: Console, world: World) -> None:
    """A map is a nested topology, whose graph has a node for each item and a link back to the map's node."""
    each = {"type": PLAIN, "depends_on": ["first"], "map": {"over": "[`1`, `2`]"}}
    topology = create(world, {"first": {"type": PLAIN}, "each": each})
    world.run(60 * SECOND)
    page = console.open(f"/topologies/{topology}?node=each")
    page.get_by_role("link", name="Open its graph").click()
    expect(page.locator(".topology-progress .chip")).to_have_text(["succeeded 2"])
    page.get_by_role("link", name="node each of another topology").click()
    expect(page.locator(".crumbs")).to_contain_text(topology)


def test_the_states_of_topologies_are_combined_with_a_definition(console: Console, world: World) -> None:
    """A state that is chosen by its button is added to the search, which keeps the definition."""
    path = "/v1/topologies/definitions/nightly"
    world.ask("PUT", path, {"nodes": {"fetch": {"type": PLAIN}}})
    world.ask("POST", f"{path}/runs", {})
    create(world, {"fetch": {"type": PLAIN}})
    world.run(60 * SECOND)
    page = console.open("/topologies?q=definition:nightly")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.get_by_role("button", name="succeeded").click()
    expect(page.get_by_label("Search topologies")).to_have_value("definition:nightly state:succeeded")
    expect(page.locator("tr[data-row]")).to_have_count(1)


def test_a_graph_that_cannot_be_read_is_not_copied_silently(console: Console, world: World) -> None:
    """The error of reading a graph to copy is shown."""
    topology = create(world, {"fetch": {"type": PLAIN}}, delay_seconds=LATER)
    console.expected = ("503",)
    page = console.open(f"/topologies/{topology}")
    page.route(f"**/v1/tasks/{topology}", lambda route: route.fulfill(status=503, json={"title": "Busy"}))
    page.get_by_role("button", name="Run again…").click()
    expect(page.get_by_role("alert")).to_contain_text("Busy")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_node_is_not_deleted_alone(console: Console, world: World) -> None:
    """The page of a node's task offers no deletion, which the API would reject."""
    topology = create(world, {"fetch": {"type": PLAIN}})
    world.run(60 * SECOND)
    node = world.ask("GET", f"/v1/topologies/{topology}")["nodes"]["fetch"]["task_id"]
    page = console.open(f"/tasks/{node}")
    expect(page.get_by_role("button", name="Roll back")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


def test_a_part_of_a_graph_is_run_from_a_node(console: Console, world: World) -> None:
    """A node and all nodes that depend on it become a new topology that does not depend on other nodes."""
    nodes = NODES | {"other": {"type": PLAIN}, "report": NODES["report"] | {"inputs": ["left"]}}
    topology = create(world, nodes, delay_seconds=LATER)
    page = console.open(f"/topologies/{topology}?node=right")
    page.get_by_role("button", name="New topology from here…").click()
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".crumbs")).not_to_contain_text(topology)
    made = page.locator(".crumbs code").inner_text()
    expect(page.locator(".topology-progress .chip").first).to_be_visible()
    read = world.ask("GET", f"/v1/topologies/{made}")["nodes"]
    assert {name: node["depends_on"] for name, node in read.items()} == {
        "right": [],
        "report": ["right"],
        "tidy": ["report"],
    }


def test_times_can_be_zoomed_and_long_pauses_are_folded(console: Console, world: World, ledger: Ledger) -> None:
    """A long idle time is folded unless the user expands it, and the address keeps both settings."""
    topology = create(world, {name: NODES[name] for name in ("fetch", "right")})
    world.run(15 * MINUTE)
    ledger.is_broken = False
    world.ask("POST", f"/v1/topologies/{topology}/retry", {})
    world.run(30 * SECOND)
    page = console.open(f"/topologies/{topology}?view=times")
    expect(page.locator(".gantt-row")).to_have_count(2)
    expect(page.locator(".gantt-folds i")).to_have_attribute("title", re.compile(r"Nothing ran for 1[45] min"))
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Fold pauses").click()
    expect(page.locator(".gantt-folds i")).to_have_count(0)
    page.reload()
    expect(page.locator(".gantt-row")).to_have_count(2)
    assert page.evaluate("document.querySelector('.gantt-sheet').style.width") == "200%"
    expect(page.locator(".gantt-folds i")).to_have_count(0)


def test_the_keyboard_selects_nodes_in_the_graph(console: Console, world: World) -> None:
    """Arrow keys move from a node to its children and parents, and the address keeps the zoom."""
    topology = create(world, NODES, delay_seconds=LATER)
    page = console.open(f"/topologies/{topology}")
    graph = page.get_by_role("application")
    graph.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".node-panel h2")).to_have_text("fetch")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".node-panel h2")).to_have_text(re.compile("left|right"))
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".node-panel h2")).to_have_text("fetch")
    page.keyboard.press("+")
    page.wait_for_url(re.compile("at="))


def test_a_rejected_graph_is_shown_with_the_line_of_the_error(console: Console, world: World) -> None:
    """A refused graph is shown with the line of the error, which a click selects; the fixed graph is created."""
    console.expected = ("status of 422",)
    page = console.open("/topologies")
    expect(page.get_by_role("heading", name="No topologies yet")).to_be_visible()
    page.get_by_role("button", name="New topology").click()
    text = page.get_by_label("Graph")
    good = text.input_value().replace('"echo"', f'"{PLAIN}"')
    text.fill(good.replace('"depends_on": ["fetch"]}', '"depends_on": ["fitch"]}'))
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".faults li")).to_contain_text("nodes.check.depends_on names 'fitch'")
    page.get_by_role("button", name="Line 6").click()
    selected = "(area) => area.value.slice(area.selectionStart, area.selectionEnd)"
    assert text.evaluate(selected) == '"depends_on": ["fitch"]'
    text.fill(good)
    page.get_by_role("button", name="Create").click()
    expect(page.locator("h1")).to_contain_text("example")
    world.run(60 * SECOND)
    expect(page.locator("h1 .chip")).to_have_text("succeeded")


@pytest.mark.slow
def test_pausing_a_large_topology_shows_its_operation(console: Console, world: World) -> None:
    """A pause of many nodes continues in the background; the page shows the request and links to the operation."""
    gate: dict[str, dict[str, Any]] = {"gate": {"type": PLAIN, "delay_seconds": LATER}}
    nodes = gate | {f"n{at}": {"type": PLAIN, "depends_on": ["gate"]} for at in range(501)}
    topology = create(world, nodes)
    world.run(30 * SECOND)
    page = console.open(f"/topologies/{topology}")
    page.get_by_role("button", name="Pause").click()
    page.locator("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("asked to pause")
    world.run(60 * SECOND)
    expect(page.locator(".topology-progress .chip").filter(has_text="paused")).to_have_text("paused 1")
    operations = console.open("/bulk-operations")
    operations.get_by_role("link", name="pause nodes").click()
    expect(operations.locator("h1 .chip")).to_have_text("succeeded")
    operations.get_by_role("link", name=topology).click()
    operations.get_by_role("button", name="Resume").click()
    operations.locator("dialog").get_by_role("button", name="Resume").click()
    world.run(60 * SECOND)
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator("h1")).not_to_contain_text("asked to pause")


def check_views(console: Console, topology: str, *, narrow: bool, scheme: str) -> None:
    """Fail if axe finds a violation in a view of a topology, or if a view is wider than its screen."""
    page = console.open(f"/topologies/{topology}?node=report", narrow=narrow, scheme=scheme)
    for name in ("Graph", "Times", "Nodes"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator(f".topology-view[aria-label={name}]")).to_be_visible()
        console.check_accessibility(page)
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], name


@pytest.mark.usefixtures("ledger")
def test_no_topology_view_has_axe_violations(console: Console, world: World) -> None:
    """None of a failed run's views has axe violations on a phone in the dark theme."""
    topology = create(world, NODES, on_failure="continue")
    world.run(60 * SECOND)
    check_views(console, topology, narrow=True, scheme="dark")


@pytest.mark.slow
@pytest.mark.usefixtures("ledger")
def test_no_topology_view_has_axe_violations_on_a_desktop(console: Console, world: World) -> None:
    """The views on a desktop, and the list on a phone, have no axe violations in the light theme."""
    topology = create(world, NODES, on_failure="continue")
    world.run(60 * SECOND)
    check_views(console, topology, narrow=False, scheme="light")
    page = console.open("/topologies", narrow=True)
    expect(page.locator("tr[data-row]")).to_have_count(1)
    console.check_accessibility(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
