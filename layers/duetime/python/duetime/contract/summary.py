"""The summary over REST: counts of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

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
    total: Annotated[int, Field(description="Number of its tasks.")]
    states: Annotated[Mapping[str, int], Field(description="Number of its tasks in each state that has some.")]


class SummaryResponse(TypedDict):
    """The number of tasks: all that can still be read, including ended ones."""

    total: Annotated[int, Field(description="Number of tasks.")]
    states: Annotated[Mapping[str, int], Field(description="Number of tasks in each state that has some.")]
    priorities: Annotated[Mapping[str, int], Field(description="Number of tasks of each priority that has some.")]
    types: Annotated[
        Sequence[TypeSummary], Field(description=f"The {MAX_SUMMARY_TYPES} types with the most tasks, most first.")
    ]
    other_types: Annotated[int, Field(description="Number of types that `types` has no room for.")]
    is_complete: Annotated[
        bool,
        Field(
            description="Whether all tasks are counted. False for an owner of tens of thousands of types, and while "
            "tasks from before `counted_since` are not counted yet."
        ),
    ]
    as_of: Annotated[
        Instant | None,
        Field(
            description="When the latest counted change was made, to the second; null if none is counted. Changes are "
            "counted within seconds; after an outage, counting catches up."
        ),
    ]
    counted_since: Annotated[
        Instant | None,
        Field(
            description="Tasks that were created at or after this are counted by their changes. Older ones are counted "
            "by reading the table, again and again until none is left; their states are as of `recounted_at`. Null: "
            "all tasks are counted by their changes."
        ),
    ]
    recounted_at: Annotated[
        Instant | None,
        Field(description="When tasks from before `counted_since` were last counted; null if they were not."),
    ]


class OwnerSummary(TypedDict):
    """The number of tasks of one owner."""

    owner: str
    total: Annotated[int, Field(description="Number of the owner's tasks.")]
    states: Annotated[Mapping[str, int], Field(description="Number of its tasks in each state that has some.")]
    is_complete: Annotated[bool, Field(description="As `is_complete` of the owner's own summary.")]
    as_of: Annotated[Instant | None, Field(description="As `as_of` of the owner's own summary.")]


class OwnerSummaryPage(TypedDict):
    """A page of owners with the numbers of their tasks."""

    owners: Annotated[Sequence[OwnerSummary], Field(description="The owners, by name.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last one.")]


class OwnerSummaryQuery(Parameters):
    """Parameters of `GET /v1/summary/owners`."""

    limit: Annotated[_PageSize, Field(description="Maximum number of owners on a page.")] = MAX_SUMMARY_OWNERS
    next_token: Annotated[str | None, Field(description="`next_token` of the previous page.")] = None


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
        scope: of the page token.
    """
    token = None if last is None else page_tokens.text_token(last, scope)
    return OwnerSummaryPage(owners=[_owner(*each) for each in found], next_token=token)


def owner_after(token: str | None, scope: str) -> str:
    """The owner after which a token continues; the empty string without a token.

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
    "Get the numbers of tasks",
    Returns(SummaryResponse, "The numbers of tasks."),
    description="How many of your tasks are in each state, of each type and of each priority. The numbers are kept "
    "up to date from changes of tasks: each change is counted exactly once, some seconds after it was made.",
    errors=(SummaryOff,),
)
LIST_OWNERS = Operation(
    "listSummaryOwners",
    "GET /v1/summary/owners",
    "List the numbers of tasks by owner",
    Returns(OwnerSummaryPage, "A page of owners."),
    description="How many tasks each owner has, for operators. Owners are ordered by name; those whose tasks are all "
    "gone are listed with none.",
    query=OwnerSummaryQuery,
    role=Role.OPERATOR,
    errors=(SummaryOff,),
)
