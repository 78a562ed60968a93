"""Fixtures of every folder: the embedded AWS, started once per session if a test needs it."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it ships no types

from duetime_local import emulator
from tests import grants
from tests.aws_connections import close_connections, remember_connections
from tests.botocore_model_cache import share_service_models
from tests.parts import ALL, Part, read_part
from tests.server_dates import drop_server_dates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.emulator import Emulator

# Property tests have no time limits, because the machine may be busy, and use the same examples each time, so that
# failures are reproducible and unrelated changes cause none.
QUICK, THOROUGH = 30, 300
"""Examples of each property in `make test`, and in `make test-slow` (`--hypothesis-profile=thorough`)."""
for profile, examples in (("thorough", THOROUGH), ("duetime", QUICK)):
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(profile)

# A client without credentials would request some over the network.
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# The CDK's own check of a template only warns, and takes longer than all else that it does; `tests/infra/test_lint.py`
# has cfn-lint check the same templates.
os.environ["CDK_VALIDATION"] = "false"
# Imports and collected tests live on: looking for garbage among them takes a tenth of the collection.
gc.disable()
drop_server_dates()
share_service_models()
remember_connections()


@pytest.fixture(scope="session")
def engine() -> Iterator[Emulator]:
    """MiniStack's services without a deployment: atomic and rightly metered, unlike moto.

    `engine.client("dynamodb")` is a boto3 client. The engine is shared: name tables and queues freshly.
    """
    with emulator.running(port=0) as started:
        yield started


@pytest.fixture(autouse=True)
def _no_connection_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test's connections to the engine are closed at its end, so that other tests do not use them."""
    yield
    if "engine" in request.fixturenames:
        close_connections()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--part` runs only some of the files, for slow suites."""
    parser.addoption("--part", default=str(ALL), help="Which part of how many: 3/10, or commit/10.")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an invalid part before collection."""
    try:
        config.stash[_PART] = read_part(config.option.part)
    except ValueError as refusal:
        raise pytest.UsageError(str(refusal)) from None


_PART = pytest.StashKey[Part]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that start real processes, and run the longest first, in parallel with the others."""
    part = config.stash[_PART]
    left_out = [item for item in items if not part.has(scope_of(item.nodeid))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if part.has(scope_of(item.nodeid))]
    for item in items:
        for fixture in {"engine", "deployed"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(fixture)
    begins = [*TOGETHER, "tests/simulation/"]

    def rank(item: pytest.Item) -> int:
        return next((number for number, folder in enumerate(begins) if item.nodeid.startswith(folder)), len(begins))

    # What takes longest comes first, so that all else is run beside it.
    items.sort(key=rank)


TOGETHER = {"tests/deployed/": "deployed", "tests/infra/": "infra", "tests/docs/": "infra"}
"""Folders whose tests share something slow: one deployment, and the templates of every environment."""


def scope_of(nodeid: str) -> str:
    """What a test's process and part go by: what it shares, else its file."""
    folders = (scope for folder, scope in TOGETHER.items() if nodeid.startswith(folder))
    return next(folders, nodeid.split("::", 1)[0])


class ByWhatIsShared(LoadScopeScheduling):  # type: ignore[misc]  # same
    """Sends what shares a slow fixture to one process of pytest-xdist, and the tests of any other file to one.

    pytest-xdist 3.8 has a mark for this, `xdist_group`, which pytest 9.2 silently ignores.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def pytest_collection_finish() -> None:
    """Freeze the collected tests for the garbage collector, because they live to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Freeze what lives on after a file, mostly its imports: each full collection would walk through it again.

    The last collection is of everything, so that an object that was never closed is reported.
    """
    if nextitem is None:
        gc.unfreeze()
        gc.collect()
    elif nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByWhatIsShared:
    """Distribute tests by what they share."""
    return ByWhatIsShared(config, log)


_USED: set[grants.Use] = set()
"""What the functions did in the processes of pytest-xdist that have ended."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of the whole suite after which something that is granted was not used by any test."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        # In a process of pytest-xdist, which knows only a part.
        told["grants"] = sorted(grants.USED)
        return
    options = session.config.option
    chosen = (session.config.args, options.markexpr, options.keyword, session.config.stash[_PART])
    is_whole = chosen == (["tests"], "not slow", "", ALL)
    if is_whole and (unused := grants.unused(grants.USED | _USED)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        lines = "\n".join(f"  {name}: {action} on {resource}" for name, action, resource in unused)
        session.config.get_terminal_writer().line(f"\nGranted, and not used by any test:\n{lines}", red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401, ARG001 - pytest-xdist's own
    """Take over the recordings of a process of pytest-xdist."""
    _USED.update((name, action, resource) for name, action, resource in node.workeroutput.get("grants", ()))
