"""Writes Grafana's dashboard for a deployment, which uses Grafana's CloudWatch data source: `python -m infra.grafana`.

The dashboard contains no names of resources. The names are variables that are set at import, and the stack lists them
as outputs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import TYPE_CHECKING, Any

from duetime_cdk.metric_expressions import Expression
from duetime_cdk.metric_sources import namespace_of
from duetime_cdk.panels import Panel, Unit, sections
from infra import ROOT
from infra.environments import environment_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_cdk.metric_sources import Source

PATH = ROOT / "grafana" / "duetime.json"
_ENVIRONMENT = environment_named("prod")
"""The environment whose function sizes determine the costs that the dashboard shows."""
_STACK = f"duetime-{_ENVIRONMENT.name}"
_SOURCE = {"type": "cloudwatch", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_UNITS = {
    Unit.COUNT: "short",
    Unit.MILLISECONDS: "ms",
    Unit.PERCENT: "percent",
    Unit.DOLLARS: "currencyUSD",
}
_NAMESPACE = namespace_of("$stack")
_VARIABLE = re.compile(r"\$\w+")


def dashboard() -> dict[str, Any]:
    """The dashboard as JSON for Grafana's import."""
    return {
        "title": "duetime",
        "uid": "duetime",
        "tags": ["duetime"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }


def text() -> str:
    """The content of the dashboard file."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "cloudwatch", "label": "Data source"}
    yield _constant("stack", _STACK)
    names = {
        value
        for section in sections(_ENVIRONMENT)
        for panel in section.panels
        for source in panel.sources
        for value in source.dimensions.values()
        if _VARIABLE.fullmatch(value)
    }
    yield from (_constant(name.removeprefix("$"), "") for name in sorted(names))


def _constant(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "type": "textbox", "label": name.replace("_", " "), "query": value}


def _panels() -> Iterator[dict[str, Any]]:
    y = number = 0
    for section in sections(_ENVIRONMENT):
        number += 1
        yield {"id": number, "type": "row", "title": section.title, "gridPos": _place(0, y, _COLUMNS, 1), "panels": []}
        y += 1
        for position, panel in enumerate(section.panels):
            number += 1
            x = position * _WIDTH % _COLUMNS
            yield _panel(number, panel, _place(x, y, _WIDTH, _HEIGHT))
            if x + _WIDTH == _COLUMNS or panel is section.panels[-1]:
                y += _HEIGHT


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": _UNITS[panel.unit]}, "overrides": []},
        "targets": list(_targets(panel)),
    }


def _targets(panel: Panel) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(panel.lines):
        if isinstance(line, Expression):
            for name, source in line.sources.items():
                yield {**_target(source), "id": name, "refId": name, "hide": True}
            yield {
                "refId": f"line{number}",
                "datasource": _SOURCE,
                "region": "default",
                "id": f"line{number}",
                "expression": line.formula,
                "label": line.label,
                "metricEditorMode": 1,
                "metricQueryType": 0,
            }
        else:
            yield {**_target(line), "id": f"line{number}", "refId": f"line{number}"}


def _target(source: Source) -> dict[str, Any]:
    return {
        "datasource": _SOURCE,
        "region": "default",
        "namespace": source.namespace or _NAMESPACE,
        "metricName": source.name,
        "dimensions": dict(source.dimensions),
        "matchExact": True,
        "statistic": source.statistic,
        "label": source.label,
        "period": "60",
        "metricEditorMode": 0,
        "metricQueryType": 0,
    }


def main() -> int:
    """Write the file, or compare it with the dashboard; returns 1 if the file differs."""
    parser = argparse.ArgumentParser(description="Write Grafana's dashboard.")
    parser.add_argument("--check", action="store_true", help="write nothing; say whether the file differs")
    if parser.parse_args().check:
        return int(not PATH.exists() or PATH.read_text(encoding="utf-8") != text())
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"written: {PATH.relative_to(ROOT)}, for namespaces like {namespace_of(_STACK)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
