"""Fixtures for all folders, such as the embedded AWS, which is started once per session if a test needs it."""

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
from tests.reports import escape_surrogates
from tests.server_dates import drop_server_dates

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from duetime_local.emulator import Emulator

# Property tests have no time limits, because the machine may be busy. They use the same examples each time, so that
# failures are reproducible and unrelated changes cause no failures.
QUICK, THOROUGH = 30, 300
"""The number of examples of each property in `make test` and in `make test-slow` (`--hypothesis-profile=thorough`)."""
for profile, examples in (("thorough", THOROUGH), ("duetime", QUICK)):
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(profile)

# A client without credentials would request credentials over the network.
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# The CDK's own check of a template only gives warnings and takes most of the synthesis time; in
# `tests/infra/test_lint.py`, cfn-lint checks the same templates.
os.environ["CDK_VALIDATION"] = "false"
# Imports and collected tests are never garbage, and searching them for garbage takes a tenth of the collection time.
gc.disable()
drop_server_dates()
share_service_models()
remember_connections()


@pytest.fixture(scope="session")
def engine() -> Iterator[Emulator]:
    """Start MiniStack's services without a deployment; unlike moto, they are atomic and meter capacity correctly.

    `engine.client("dynamodb")` is a boto3 client. The engine is shared, so each test must use new names for tables and
    queues.
    """
    with emulator.running(port=0) as started:
        yield started


@pytest.fixture(autouse=True)
def _no_connection_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close a test's connections to the engine at its end, so that other tests do not use them."""
    yield
    if "engine" in request.fixturenames:
        close_connections()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--part`, which runs only some of the files in slow suites."""
    parser.addoption("--part", default=str(ALL), help="Which part of how many: 3/10, or commit/10.")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an invalid part before collection."""
    try:
        config.stash[_PART] = read_part(config.option.part)
    except ValueError as refusal:
        raise pytest.UsageError(str(refusal)) from None


_PART = pytest.StashKey[Part]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the part's tests, mark those that start real processes, and start the longest tests first."""
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

    # The longest tests start first, so that all other tests run in parallel.
    items.sort(key=rank)


TOGETHER = {"tests/deployed/": "deployed", "tests/infra/": "infra", "tests/docs/": "infra"}
"""Folders whose tests share a slow fixture: a deployment, or the templates for every environment."""


def scope_of(nodeid: str) -> str:
    """Return the name that determines a test's process and part: a shared fixture's name, or else the file's name."""
    folders = (scope for folder, scope in TOGETHER.items() if nodeid.startswith(folder))
    return next(folders, nodeid.split("::", 1)[0])


class ByWhatIsShared(LoadScopeScheduling):  # type: ignore[misc]  # same
    """Assigns tests that share a slow fixture, or else a file, to the same pytest-xdist process.

    pytest-xdist 3.8 has a mark for this, `xdist_group`, which pytest 9.2 silently ignores.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def pytest_collection_finish() -> None:
    """Freeze the collected tests for the garbage collector, because they live until the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Freeze the objects that stay in memory after a file, mostly imports, so that full collections skip them.

    The last collection includes everything, so that objects that were never closed are reported.
    """
    if nextitem is None:
        gc.unfreeze()
        gc.collect()
    elif nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByWhatIsShared:
    """Distribute tests by the slow fixtures that they share."""
    return ByWhatIsShared(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Escape lone surrogates in a report, so that pytest-xdist can send it to the main process."""
    return escape_surrogates((yield))


_USED: set[grants.Use] = set()
"""Grants that functions used in pytest-xdist processes that have ended."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of the complete suite if a grant was not used by any test."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        # A pytest-xdist process knows only some of the used grants.
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
    """Add the grants that a finished pytest-xdist process has recorded."""
    _USED.update((name, action, resource) for name, action, resource in node.workeroutput.get("grants", ()))
