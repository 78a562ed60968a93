"""The REST API for the summary, which contains task counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http import page_tokens
from duetime.contract.http.operation import Operation, Parameters, Returns, whole_number
from duetime.contract.tasks.responses import Instant
from duetime.domain.callers import Role
from duetime.domain.errors import SummaryOff
from duetime.domain.limits import MAX_SUMMARY_OWNERS, MAX_SUMMARY_TYPES
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.summary import Summary
    from duetime.domain.times import Millis


def _page_size(text: object) -> int:
    return whole_number(text, 1, MAX_SUMMARY_OWNERS)


_PageSize = Annotated[
    int,
    BeforeValidator(_page_size),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_SUMMARY_OWNERS}),
]


class TypeSummary(TypedDict):
    """The number of tasks of one type."""

    type: str
    total: Annotated[int, Field(description="Number of tasks of this type.")]
    states: Annotated[Mapping[str, int], Field(description="Number of tasks by state, without zeros.")]


class SummaryResponse(TypedDict):
    """The number of tasks that can still be read, including ended tasks."""

    total: Annotated[int, Field(description="Number of tasks.")]
    states: Annotated[Mapping[str, int], Field(description="Number of tasks by state, without zeros.")]
    priorities: Annotated[Mapping[str, int], Field(description="Number of tasks by priority, without zeros.")]
    types: Annotated[
        Sequence[TypeSummary],
        Field(description=f"The {MAX_SUMMARY_TYPES} types with the most tasks, in descending order."),
    ]
    other_types: Annotated[int, Field(description="Number of types that are not in `types`.")]
    is_complete: Annotated[
        bool,
        Field(
            description="Whether all tasks are counted. This field is false for an owner with tens of thousands of "
            "types, and until tasks from before `counted_since` are counted."
        ),
    ]
    as_of: Annotated[
        Instant | None,
        Field(
            description="Time of the latest counted change, to the second; null if none was counted. Changes are "
            "counted within seconds; after an outage, counting catches up."
        ),
    ]
    counted_since: Annotated[
        Instant | None,
        Field(
            description="Tasks created at or after this time are counted from their changes. Older tasks are counted "
            "by reading the table repeatedly until none is left; their states are as of `recounted_at`. Null if all "
            "tasks are counted from their changes."
        ),
    ]
    recounted_at: Annotated[
        Instant | None,
        Field(description="When tasks from before `counted_since` were last counted; null if they were never counted."),
    ]


class OwnerSummary(TypedDict):
    """The number of tasks of one owner."""

    owner: str
    total: Annotated[int, Field(description="Number of the owner's tasks.")]
    states: Annotated[Mapping[str, int], Field(description="Number of tasks by state, without zeros.")]
    is_complete: Annotated[bool, Field(description="Like `is_complete` in the owner's own summary.")]
    as_of: Annotated[Instant | None, Field(description="Like `as_of` in the owner's own summary.")]


class OwnerSummaryPage(TypedDict):
    """A page of owners with their task counts."""

    owners: Annotated[Sequence[OwnerSummary], Field(description="The owners, by name.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class OwnerSummaryQuery(Parameters):
    """Parameters of `GET /v1/summary/owners`."""

    limit: Annotated[_PageSize, Field(description="Maximum number of owners on a page.")] = MAX_SUMMARY_OWNERS
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


def summary_response(summary: Summary) -> SummaryResponse:
    """The response for an owner's counts."""
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
        as_of=_instant(summary.as_of),
        counted_since=_instant(summary.counted_since),
        recounted_at=_instant(summary.recounted_at),
    )


def owner_summary_page(found: Sequence[tuple[str, Summary]], last: str | None, scope: str) -> OwnerSummaryPage:
    """The response for a page of owners.

    Args:
        found: the owners and their counts.
        last: the last owner of the page, if there may be more.
        scope: scope of the page token.
    """
    token = None if last is None else page_tokens.text_token(last, scope)
    return OwnerSummaryPage(owners=[_owner(*each) for each in found], next_token=token)


def owner_after(token: str | None, scope: str) -> str:
    """The owner after which a token continues; empty if there is no token.

    Raises:
        ParametersInvalid: the token does not belong to this list.
    """
    return "" if token is None else page_tokens.text_after(token, scope)


def _owner(owner: str, summary: Summary) -> OwnerSummary:
    states: Counter[str] = Counter()
    for group, number in summary.counts.items():
        states[group.state.value] += number
    return OwnerSummary(
        owner=owner,
        total=states.total(),
        states=_some(states),
        is_complete=summary.is_complete,
        as_of=_instant(summary.as_of),
    )


def _instant(at: Millis | None) -> Instant | None:
    return None if at is None else to_iso(at)


def _some(counts: Counter[str]) -> dict[str, int]:
    """The counts that are not zero."""
    return {name: number for name, number in sorted(counts.items()) if number}


GET = Operation(
    "getSummary",
    "GET /v1/summary",
    "Get task counts",
    Returns(SummaryResponse, "The task counts."),
    description="Number of your tasks by state, type and priority. The counts follow task changes: each change is "
    "counted exactly once, a few seconds later.",
    errors=(SummaryOff,),
)
LIST_OWNERS = Operation(
    "listSummaryOwners",
    "GET /v1/summary/owners",
    "List task counts by owner",
    Returns(OwnerSummaryPage, "A page of owners."),
    description="For operators: the number of tasks of each owner, ordered by name. Owners whose tasks are all gone "
    "are listed with 0.",
    query=OwnerSummaryQuery,
    role=Role.OPERATOR,
    errors=(SummaryOff,),
)
