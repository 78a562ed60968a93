"""What a creation may say of other tasks with the same key."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from duetime.contract.http.request_model import Body
from duetime.domain.limits import MAX_DEBOUNCE_SECONDS, MAX_UNIQUE_KEY_LENGTH
from duetime.domain.tasks.task_options import OnConflict, Until

UniqueKey = Annotated[
    str,
    Field(
        pattern=rf"^[!-~]{{1,{MAX_UNIQUE_KEY_LENGTH}}}$",
        description="The key, among the owner's; `unique` and `debounce` share them.",
        examples=["customer-17"],
    ),
]
DebounceSeconds = Annotated[int, Field(ge=1, le=MAX_DEBOUNCE_SECONDS)]


class Unique(Body):
    """That a task shall be the only one of its key: of an owner's tasks, one at a time holds a key."""

    key: UniqueKey
    until: Annotated[
        Until,
        Field(strict=False, description="Whether it holds the key until it starts, or until it has ended."),
    ] = Until.ENDED
    on_conflict: Annotated[
        OnConflict,
        Field(
            strict=False,
            description="What happens if another task holds the key: that task is returned as it is (`keep`), it gets "
            "the fields of this request if it has not started (`replace`), or this request is a conflict (`refuse`).",
        ),
    ] = OnConflict.KEEP


class Debounce(Body):
    """That further creations with the key put the task off, and replace its fields, until it starts."""

    key: UniqueKey
    seconds: Annotated[DebounceSeconds, Field(description="It is due this many seconds after the latest creation.")]
    max_seconds: Annotated[
        DebounceSeconds | None,
        Field(description="It is due this many seconds after the first creation at the latest; null for no limit."),
    ] = None

    @model_validator(mode="after")
    def _allows_one(self) -> Self:
        if self.max_seconds is not None and self.max_seconds < self.seconds:
            raise ValueError("has a `max_seconds` below its `seconds`")
        return self


class TaskUniqueness(Body):
    """What a creation may say of other tasks with the same key."""

    unique: Annotated[Unique | None, Field(description="Makes it the only task of a key; null for none.")] = None
    debounce: Annotated[
        Debounce | None,
        Field(description="Has further creations put it off. Excludes a due time and `unique`; null for none."),
    ] = None


def without_uniqueness(schema: dict[str, Any]) -> None:
    """What is a part of a schedule or a topology has no key: what is given all the same is refused with the reason."""
    for name in TaskUniqueness.model_fields:
        schema["properties"].pop(name)
