"""Responses with cost estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.tasks.responses import CostEstimateResponse, CostLineResponse
from duetime_common.cost_estimate import lines_of
from duetime_common.prices import AS_OF

if TYPE_CHECKING:
    from duetime.domain.cost_estimates import RequestWorkload

_DECIMALS = 12


def estimate_response(workload: RequestWorkload) -> CostEstimateResponse:
    """The response for an estimate."""
    lines = [line for line in lines_of(workload.parts) if line.quantity]
    return CostEstimateResponse(
        dollars=_rounded(sum(line.dollars for line in lines)),
        tasks=round(sum(part.tasks for part in workload.parts)),
        days=workload.days,
        lines=[
            CostLineResponse(
                part=line.part, quantity=_rounded(line.quantity), unit=line.unit, dollars=_rounded(line.dollars)
            )
            for line in lines
        ],
        left_out=workload.left_out,
        region=workload.region,
        prices_as_of=AS_OF,
    )


def _rounded(number: float) -> float:
    return round(number, _DECIMALS)
