"""Cost estimates that the API returns when tasks are created."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RequestCostLine(BaseModel):
    """A cost item: what is paid for, its quantity and its price."""

    model_config = ConfigDict(frozen=True, extra="allow")

    part: str
    quantity: float
    unit: str = ""
    dollars: float


class RequestEstimate(BaseModel):
    """Estimated cost of tasks, or of a schedule's runs in `days` days, if each task succeeds on its first attempt."""

    model_config = ConfigDict(frozen=True, extra="allow")

    dollars: float
    tasks: int
    days: int | None = None
    lines: tuple[RequestCostLine, ...] = Field(default=())
    left_out: tuple[str, ...] = ()
    region: str = ""
    prices_as_of: str = ""


def estimate_query(*, is_wanted: bool) -> list[tuple[str, str]]:
    """The query parameter that requests an estimate."""
    return [("estimate", "1")] if is_wanted else []
