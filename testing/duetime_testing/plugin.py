"""The pytest plugin, which provides the fixtures `duetime` and `duetime_aws` and the option `--duetime-url`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# The test kit is imported only when a test uses it, because the import takes time.

_MARKER = (
    "duetime(mode='virtual', start='2026-01-05T09:00:00+00:00', secrets={'stripe': 'test'}): how the fixture `duetime`"
    " begins: the modes are virtual, inline and record"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command line and ini options."""
    group = parser.getgroup("duetime")
    group.addoption("--duetime-url", help="run against this deployed API, in real time, instead of in virtual time")
    parser.addini(
        "duetime_handlers", "the package that registers the project's handlers when it is imported", default=""
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker `duetime`."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def duetime(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Provides a separate `duetime_testing.Duetime` for each test, whose virtual time begins at a fixed time."""
    url = request.config.getoption("--duetime-url")
    marker = request.node.get_closest_marker("duetime")
    options = dict(marker.kwargs) if marker else {}
    if url:
        from duetime_testing.deployed import DeployedDuetime  # noqa: PLC0415 - see above

        deployed = DeployedDuetime(url)
        try:
            yield deployed
        finally:
            deployed.close()
        return
    from duetime_testing.duetime_fixture import Duetime, instant  # noqa: PLC0415 - see above

    if "start" in options:
        options["start"] = instant(options["start"])
    made = Duetime(handlers_package=request.config.getini("duetime_handlers"), **options)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def duetime_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Mocks AWS with moto for handlers that use boto3, and requires `duetime-testing[moto]`."""
    moto = pytest.importorskip("moto", reason="pip install duetime-testing[moto]")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with moto.mock_aws():
        yield
