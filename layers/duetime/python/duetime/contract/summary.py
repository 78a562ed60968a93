"""The summary over REST: how many tasks there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.tasks.responses import Instant  # noqa: TC001 - pydantic reads the annotations
from duetime.domain.errors import SummaryOff
from duetime.domain.limits import MAX_SUMMARY_TYPES
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.summary.counts import Summary


class TypeSummary(TypedDict):
    """How many tasks of one type there are."""

    type: str
    total: Annotated[int, Field(description="Number of its tasks.")]
    states: Annotated[Mapping[str, int], Field(description="Number of its tasks in each state that has some.")]


class SummaryResponse(TypedDict):
    """How many tasks there are: all that can still be read, the ended ones included."""

    total: Annotated[int, Field(description="Number of tasks.")]
    states: Annotated[Mapping[str, int], Field(description="Number of tasks in each state that has some.")]
    priorities: Annotated[Mapping[str, int], Field(description="Number of tasks of each priority that has some.")]
    types: Annotated[
        Sequence[TypeSummary], Field(description=f"The {MAX_SUMMARY_TYPES} types with the most tasks, most first.")
    ]
    other_types: Annotated[int, Field(description="Number of types that `types` has no room for.")]
    is_complete: Annotated[
        bool, Field(description="Whether all types are counted in; false for an owner of tens of thousands of types.")
    ]
    as_of: Annotated[
        Instant | None,
        Field(
            description="When the latest change was made that is counted, to the second; null if none is. Changes are "
            "counted within seconds; after an outage, counting catches up."
        ),
    ]


def summary_response(summary: Summary) -> SummaryResponse:
    """An owner's counts."""
    states: Counter[str] = Counter()
    priorities: Counter[str] = Counter()
    types: dict[str, Counter[str]] = {}
    for group, number in summary.counts.items():
        states[group.state.value] += number
        priorities[group.priority.value] += number
        types.setdefault(group.type, Counter())[group.state.value] += number
    largest = sorted(types, key=lambda name: (-types[name].total(), name))
    return SummaryResponse(
        total=states.total(),
        states=_some(states),
        priorities=_some(priorities),
        types=[
            TypeSummary(type=name, total=types[name].total(), states=_some(types[name]))
            for name in largest[:MAX_SUMMARY_TYPES]
        ],
        other_types=max(0, len(largest) - MAX_SUMMARY_TYPES),
        is_complete=summary.is_complete,
        as_of=None if summary.as_of is None else to_iso(summary.as_of),
    )


def _some(counts: Counter[str]) -> dict[str, int]:
    """Without what has none."""
    return {name: number for name, number in sorted(counts.items()) if number}


GET = Operation(
    "getSummary",
    "GET /v1/summary",
    "Get the numbers of tasks",
    Returns(SummaryResponse, "The numbers of tasks."),
    description="How many of your tasks are in each state, of each type and of each priority. The numbers are kept "
    "from the changes of tasks: a change is counted exactly once, some seconds after it was made.",
    errors=(SummaryOff,),
)
