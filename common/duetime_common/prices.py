"""The price table, which contains assumed AWS prices in three regions. All cost calculations use these figures.

The figures are public on-demand list prices without free tiers, volume tiers, savings plans or taxes. Only the prices
of DynamoDB and HTTP APIs in us-east-1 were compared with a published list; all other prices are assumptions. Check your
account's prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

MILLION = 1_000_000
AS_OF = "2026-11-21"
"""Date of the price table."""
WORKER_MB = 512
"""Default memory of a worker, in MB."""


@frozen
class Prices:
    """Prices per unit in one region, in dollars.

    Attributes:
        write_unit, read_unit: DynamoDB, on demand.
        queue_request: request to a standard SQS queue.
        function_request: invocation of a Lambda function.
        gigabyte_second: Lambda memory, on arm64.
        api_request: request to an HTTP API.
        scheduler_invocation: EventBridge Scheduler.
        trace: recorded by X-Ray.
        log_gigabyte: written to CloudWatch Logs.
        state_transition: Step Functions standard workflow.
    """

    write_unit: float
    read_unit: float
    api_request: float
    log_gigabyte: float
    queue_request: float = 0.40 / MILLION
    function_request: float = 0.20 / MILLION
    gigabyte_second: float = 0.0000133334
    scheduler_invocation: float = 1.00 / MILLION
    trace: float = 5.00 / MILLION
    state_transition: float = 25.00 / MILLION


DEFAULT_REGION = "us-east-1"
PRICES: Mapping[str, Prices] = {
    DEFAULT_REGION: Prices(
        write_unit=0.625 / MILLION, read_unit=0.125 / MILLION, api_request=1.00 / MILLION, log_gigabyte=0.50
    ),
    "eu-west-1": Prices(
        write_unit=0.7068 / MILLION, read_unit=0.1415 / MILLION, api_request=1.11 / MILLION, log_gigabyte=0.57
    ),
    "ap-northeast-1": Prices(
        write_unit=0.7135 / MILLION, read_unit=0.1427 / MILLION, api_request=1.29 / MILLION, log_gigabyte=0.76
    ),
}
"""Prices by region."""
