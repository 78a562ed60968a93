"""What the tasks of a request will cost, as the API estimates it when they are created."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RequestCostLine(BaseModel):
    """What is paid for, how much of it, and what that costs."""

    model_config = ConfigDict(frozen=True, extra="allow")

    part: str
    quantity: float
    unit: str = ""
    dollars: float


class RequestEstimate(BaseModel):
    """What tasks will cost if each succeeds at its first attempt; of a schedule, the runs of `days`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    dollars: float
    tasks: int
    days: int | None = None
    lines: tuple[RequestCostLine, ...] = Field(default=())
    left_out: tuple[str, ...] = ()
    region: str = ""
    prices_as_of: str = ""


def estimate_query(*, is_wanted: bool) -> list[tuple[str, str]]:
    """The parameter of a creation whose response has an estimate."""
    return [("estimate", "1")] if is_wanted else []
