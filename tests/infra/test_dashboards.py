from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.metrics import METRICS
from duetime.ports.runtime import SHARED_COUNTS, SHARED_SERVICE
from duetime_cdk.errors import UnsafeEnvironment
from duetime_cdk.handlers_environment import HandlersEnvironment
from duetime_cdk.metric_expressions import Expression, dollars_per_million
from duetime_cdk.metric_sources import own, service_of, shared
from duetime_cdk.panels import sections
from infra.environments import environment_named
from infra.grafana import PATH, dashboard, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_cdk.metric_sources import Source
    from tests.infra.synthesis import Synthesis

PROD = environment_named("prod")
NOT_SHOWN = dict.fromkeys(("version_attempts", "version_failures"), "with `canary` only, whose alarm shows them")
"""Metrics that no panel shows, each with the reason."""
NAME = re.compile(r"\b[a-z]\d*\b")
"""The name of a metric in a formula."""


def sources() -> list[Source]:
    """Return every metric of every panel."""
    return [source for section in sections(PROD) for panel in section.panels for source in panel.sources]


def widgets(body: Any) -> str:  # noqa: ANN401 - an intrinsic of the template
    """Return the text of a dashboard in which the resources' names are not known yet."""
    parts = body["Fn::Join"][1]
    return "".join(part if isinstance(part, str) else "name" for part in parts)


def test_every_metric_is_on_a_panel_or_listed_with_a_reason() -> None:
    """Every metric that is written, and therefore billed, is on a panel or is listed with the reason why it is not."""
    shown = {source.name for source in sources() if not source.namespace}
    assert set(METRICS) - shown == set(NOT_SHOWN)


def test_every_panel_shows_metrics_that_are_written() -> None:
    """A panel's metrics are written by the panel's function or shared, with the dimensions that the panel uses."""
    for source in sources():
        if not source.namespace:
            service = source.dimensions["service"]
            written = (
                {SHARED_SERVICE} if source.name in SHARED_COUNTS else {*map(service_of, METRICS[source.name].functions)}
            )
            assert service in written
            assert set(source.dimensions) - {"service"} <= {METRICS[source.name].dimension}
    with pytest.raises(ValueError, match="trigger does not write lateness"):
        own("lateness", "p50", "trigger")
    with pytest.raises(ValueError, match="worker does not write tasks_failed as its own"):
        own("tasks_failed", "Sum", "worker")
    with pytest.raises(ValueError, match="do not share lateness"):
        shared("lateness", "p50")


def test_the_cost_of_a_million_tasks_uses_the_memory_of_the_handlers() -> None:
    """The cost uses the worker's memory, which the environment of the handlers can set."""
    larger = replace(PROD, handlers_environment=HandlersEnvironment(memory_mb=3_072))
    worker = next(name for name, source in dollars_per_million(PROD).sources.items() if is_worker_time(source))
    assert f"FILL({worker}, 0) * 0.5" in dollars_per_million(PROD).formula
    assert f"FILL({worker}, 0) * 3" in dollars_per_million(larger).formula


def is_worker_time(source: Source) -> bool:
    """Return whether a metric is the duration of the worker's invocations."""
    return (source.name, source.dimensions.get("FunctionName")) == ("Duration", "$function_worker")


def test_every_formula_uses_exactly_its_metrics() -> None:
    """Each name in a formula has a metric, and each metric is used in the formula."""
    lines = [line for section in sections(PROD) for panel in section.panels for line in panel.lines]
    for line in lines:
        if isinstance(line, Expression):
            assert set(NAME.findall(line.formula)) == set(line.sources)


def test_the_lines_of_a_panel_have_different_names() -> None:
    """The lines of a panel have different names."""
    for section in sections(PROD):
        for panel in section.panels:
            labels = [line.label for line in panel.lines]
            assert len(set(labels)) == len(labels), panel.title


def test_the_grafana_file_equals_the_code() -> None:
    """The dashboard file for Grafana matches the code; run `make docs` if this test fails."""
    assert PATH.read_text(encoding="utf-8") == text()


def test_grafana_has_every_variable_and_no_overlapping_panels() -> None:
    """Grafana knows every variable that the panels use, and panels do not overlap."""
    body = dashboard()
    known = {each["name"] for each in body["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(body["panels"])))
    assert used == known
    places = [tuple(each["gridPos"][key] for key in "xywh") for each in body["panels"]]
    assert not list(_overlapping(places))
    assert len({each["id"] for each in body["panels"]}) == len(places)


def _overlapping(places: list[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for number, one in enumerate(places):
        for other in places[number + 1 :]:
            apart = [one[n] + one[n + 2] <= other[n] or other[n] + other[n + 2] <= one[n] for n in (0, 1)]
            if not any(apart):
                yield one, other


def test_each_environment_has_one_cloudwatch_dashboard_with_all_panels(cloud: Synthesis) -> None:
    """Each environment has one dashboard, named after it, with all panels in the list."""
    (properties,) = cloud.properties("AWS::CloudWatch::Dashboard").values()
    assert properties["DashboardName"] == f"duetime-{cloud.environment.name}"
    body = json.loads(widgets(properties["DashboardBody"]))
    titles = [widget["properties"]["title"] for widget in body["widgets"] if widget["type"] == "metric"]
    panels = [panel for section in sections(cloud.environment) for panel in section.panels]
    assert titles == [f"{panel.title}: {panel.meaning}" for panel in panels]
    assert "$" not in re.sub(r"US \$", "", widgets(properties["DashboardBody"]))


def test_the_embedded_aws_has_no_dashboard(local: Synthesis) -> None:
    """The embedded AWS gets no dashboard because it could not show one."""
    assert not local.of_type("AWS::CloudWatch::Dashboard")


def test_owners_and_types_in_the_settings_are_on_the_panels() -> None:
    """Named owners and types are on the panels for final failures, lateness and duration."""
    environment = replace(PROD, metric_owners=("acme",), metric_types=("report",))
    named = [
        (source.name, source.dimensions["owner" if "owner" in source.dimensions else "type"])
        for section in sections(environment)
        for panel in section.panels
        for source in panel.sources
        if {"owner", "type"} & set(source.dimensions)
    ]
    assert {("lateness", "report"), ("duration", "report"), ("tasks_failed", "acme")} == set(named)


@pytest.mark.parametrize("values", [tuple(f"owner-{n}" for n in range(21)), ("a b",), ("",)])
def test_too_many_owners_with_separate_metrics_are_rejected(values: tuple[str, ...]) -> None:
    """CloudWatch bills each dimension value, so a list with an invalid name or too many names is refused."""
    with pytest.raises(UnsafeEnvironment, match="metrics of their own"):
        replace(PROD, metric_owners=values)
