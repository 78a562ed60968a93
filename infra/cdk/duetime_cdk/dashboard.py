"""Creates the CloudWatch dashboard of a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from duetime_cdk.metric_expressions import Expression
from duetime_cdk.metric_sources import namespace_of
from duetime_cdk.panels import Panel, Unit, sections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_cdk.environments import Environment
    from duetime_cdk.functions import Functions, Stores
    from duetime_cdk.http_api import HttpApi
    from duetime_cdk.metric_sources import Source

_WIDTH, _HEIGHT = 8, 6
_PERIOD = Duration.minutes(1)
_AXES = {
    Unit.MILLISECONDS: "ms",
    Unit.PERCENT: "%",
    Unit.DOLLARS: "US dollars",
}


class MetricNames:
    """Resolves the resources that panels and alarms reference with `$` to physical names."""

    def __init__(self, stack: str, *, stores: Stores, functions: Functions, http: HttpApi) -> None:
        queues, intake = stores.queues, stores.intake
        self._namespace = namespace_of(stack)
        self._resources: Mapping[str, str] = {
            "$table": stores.tables.tasks.table_name,
            "$api": http.api.api_id,
            "$queue_lost_changes": functions.stream.lost.queue_name,
            "$queue_dead_letters": queues.dead_letters.queue_name,
            **({"$queue_rejects": intake.rejects.queue_name} if intake else {}),
            **{f"$queue_{priority}": each.queue_name for priority, each in queues.of_priority.items()},
            **{f"$function_{name}": each.function.function_name for name, each in functions.by_name},
            "$version_": functions.worker.version,
            **{f"$version_{name}": each.version for name, each in functions.packages.items()},
        }

    def metric(self, source: Source) -> cloudwatch.Metric:
        """A metric for a panel, with its label."""
        return self.unlabeled(source, _PERIOD).with_(label=source.label)

    def unlabeled(self, source: Source, period: Duration) -> cloudwatch.Metric:
        """A metric for an alarm, without a label, because a label would turn the metric into metric math."""
        return cloudwatch.Metric(
            namespace=source.namespace or self._namespace,
            metric_name=source.name,
            dimensions_map={name: self._resources.get(value, value) for name, value in source.dimensions.items()},
            statistic=source.statistic,
            period=period,
        )

    def math(self, expression: Expression, period: Duration = _PERIOD) -> cloudwatch.MathExpression:
        """A metric-math expression for CloudWatch."""
        return cloudwatch.MathExpression(
            expression=expression.formula,
            using_metrics={name: self.unlabeled(source, period) for name, source in expression.sources.items()},
            label=expression.label,
            period=period,
        )


class Dashboard(Construct):
    """The dashboard, with all panels, section by section."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, names: MetricNames) -> None:
        super().__init__(scope, id_)
        self._names = names
        dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=Stack.of(self).stack_name)
        for section in sections(environment):
            dashboard.add_widgets(cloudwatch.TextWidget(markdown=f"## {section.title}", width=24, height=1))
            dashboard.add_widgets(*(self._widget(panel) for panel in section.panels))

    def _widget(self, panel: Panel) -> cloudwatch.IWidget:
        lines = [
            self._names.math(line) if isinstance(line, Expression) else self._names.metric(line) for line in panel.lines
        ]
        return cloudwatch.GraphWidget(
            title=f"{panel.title}: {panel.meaning}",
            left=lines,
            left_y_axis=cloudwatch.YAxisProps(label=_AXES.get(panel.unit), show_units=False),
            width=_WIDTH,
            height=_HEIGHT,
            period=_PERIOD,
        )
