"""How the processes of pytest-xdist share a run: files as a whole, and some folders in one process only.

Collecting all tests takes 9 s of a processor, and 23 s where nothing is compiled yet. Of a whole run, each process
therefore collects only what it may get to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdist.workermanage import parse_tx_spec_config  # type: ignore[import-untyped]  # it ships no types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pytest

TOGETHER = {"tests/deployed/": "deployed", "tests/infra/": "infra", "tests/docs/": "infra"}
"""Folders whose tests share something slow: one deployment, and the templates of every environment."""
FIRST = "tests/simulation/"
"""The folder with the longest files that any process may run."""
OF_ONE_PROCESS = (
    ("tests/deployed/", "tests/console/", "tests/local/", "tests/hostile/"),
    ("tests/infra/", "tests/docs/", "tests/metrics/", "tests/packaging/", "tests/bench/"),
    ("tests/openapi/", "tests/contract/", "tests/client/", "tests/testing/", "tests/upgrades/"),
)
"""Folders that only one process collects: they import what other tests do not need. Together they are half of the work,
so that all processes end at the same time: the other half is for whoever has time."""
AHEAD = 2
"""A process knows so many tests beside the running one: it prepares the next while it ends one."""


def scope_of(nodeid: str) -> str:
    """What a test's process and part go by: what it shares, else its file."""
    folders = (scope for folder, scope in TOGETHER.items() if nodeid.startswith(folder))
    return next(folders, nodeid.split("::", 1)[0])


def is_collected_elsewhere(folder: str, config: pytest.Config) -> bool:
    """Whether another process of a whole run collects a folder, such as `tests/infra/`."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths") or config.option.markexpr != "not slow":
        return False
    number, processes = int(worker["workerid"].removeprefix("gw")), int(worker["workercount"])
    if number >= processes:
        return False  # it replaces one that has crashed, and goes on with its tests
    owners = (owner for owner, folders in enumerate(OF_ONE_PROCESS) if folder in folders)
    return next(owners, number) % processes != number


def rank(nodeid: str) -> int:
    """What a process begins with: what takes longest, so that all else is done beside it."""
    begins = [*TOGETHER, FIRST]
    return next((number for number, folder in enumerate(begins) if nodeid.startswith(folder)), len(begins))


class Spread:
    """Sends each process of pytest-xdist the tests of one scope after the other, first what only it has collected.

    pytest-xdist 3.8 has a mark for scopes, `xdist_group`, which pytest 9.2 silently ignores; and it wants the same
    collection of every process.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.numnodes = len(parse_tx_spec_config(config))
        self._plugins = config.pluginmanager
        self._collected: dict[Any, Sequence[str]] = {}
        """The tests that each process has collected."""
        self._indices: dict[Any, dict[str, int]] = {}
        """Their numbers in there."""
        self._sent: dict[Any, dict[str, None]] = {}
        """The tests that each process was sent, and has not ended."""
        self._waiting: dict[str, list[str]] = {}
        """The tests of each scope that no process was sent."""
        self._has_begun = False

    @property
    def nodes(self) -> list[Any]:
        """All processes."""
        return list(self._sent)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all processes have collected."""
        return len(self._indices) >= self.numnodes

    @property
    def has_pending(self) -> bool:
        """Whether any test has not ended."""
        return bool(self._waiting) or any(self._sent.values())

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left but the last test of each process, which it runs when it is shut down."""
        return (
            self.collection_is_completed
            and not self._waiting
            and all(len(sent) < AHEAD for sent in self._sent.values())
        )

    def add_node(self, node: Any) -> None:  # noqa: ANN401 - pytest-xdist's own
        """Take up a process."""
        self._sent[node] = {}

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:  # noqa: ANN401 - same
        """Note what a process has collected."""
        self._collected[node] = collection
        self._indices[node] = {nodeid: index for index, nodeid in enumerate(collection)}

    def schedule(self) -> None:
        """Begin, or go on with a process that replaces a crashed one."""
        if not self._has_begun:
            self._has_begun = True
            self._wait_for_a_process(nodeid for collected in self._collected.values() for nodeid in collected)
            # For the percentages: pytest-xdist counts what the last process has collected.
            self._plugins.getplugin("session").testscollected = sum(map(len, self._waiting.values()))
        for node in self._indices:
            self._go_on(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ANN401, ARG002 - same
        """Note that a process has ended a test."""
        del self._sent[node][self._collected[node][item_index]]
        self._go_on(node)

    def remove_node(self, node: Any) -> str | None:  # noqa: ANN401 - same
        """Forget a process; returns the test that it was running, if it has crashed. Others run what it was sent."""
        left = list(self._sent.pop(node))
        self._indices.pop(node, None)
        self.numnodes -= 1
        self._wait_for_a_process(left[1:])
        return left[0] if left else None

    def mark_test_pending(self, item: str) -> None:
        """Of pytest-xdist's protocol; only its schedulers for other modes need it."""
        raise NotImplementedError

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:  # noqa: ANN401 - same
        """Of pytest-xdist's protocol; only its scheduler that steals work needs it."""
        raise NotImplementedError

    def _wait_for_a_process(self, nodeids: Iterable[str]) -> None:
        for nodeid in dict.fromkeys(nodeids):
            self._waiting.setdefault(scope_of(nodeid), []).append(nodeid)

    def _go_on(self, node: Any) -> None:  # noqa: ANN401 - same
        sent, indices = self._sent[node], self._indices[node]
        while len(sent) <= AHEAD and not node.shutting_down:
            scope = self._next_scope(node)
            if scope is None:
                node.shutdown()
                return
            nodeids = self._waiting.pop(scope)
            sent |= dict.fromkeys(nodeids)
            node.send_runtest_some([indices[nodeid] for nodeid in nodeids])

    def _next_scope(self, node: Any) -> str | None:  # noqa: ANN401 - same
        """One that no other process has collected, else any that this one has."""
        able = [scope for scope, nodeids in self._waiting.items() if nodeids[0] in self._indices[node]]
        others = [indices for each, indices in self._indices.items() if each is not node]
        only = (scope for scope in able if not any(self._waiting[scope][0] in indices for indices in others))
        return next(only, able[0] if able else None)
