"""`client.types`: task types, and the default options of their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read
from duetime_client.session import segment
from duetime_client.task import ResponseModel
from duetime_client.task_request_fields import body_of

if TYPE_CHECKING:
    from duetime_client.io_operations import Items
    from duetime_common.option_fields import TypeOptions

TYPES = "/v1/types"


class TypeInfo(ResponseModel):
    """A type of tasks.

    Attributes:
        has_handler: whether it has a Python handler; `None` if the handlers are not known.
        is_pulled: whether pull workers lease its tasks.
        phases: the phases that its handler offers.
        payload_schema: JSON Schema of the payload that its handler takes; `None` for any JSON.
        defaults: the default options of its tasks.
        sources: where each default comes from: `handler` or `owner`.
        retention_days: how long an ended task can be read.
        redacted: the parts of payloads and results that are hidden from read-only callers and the archive.
        updated_at: when the owner set defaults; `None` for never.
    """

    type: str
    has_handler: bool | None = None
    is_pulled: bool = False
    phases: Sequence[str] = ()
    payload_schema: Mapping[str, Any] | None = None
    defaults: Mapping[str, Any] = Field(default_factory=dict)
    sources: Mapping[str, str] = Field(default_factory=dict)
    retention_days: float | None = None
    redacted: Sequence[str] = ()
    updated_at: datetime | None = None
    updated_by: str | None = None


class TypeOperations(Resource):
    """Types of tasks."""

    @Stream
    def list(self) -> Items[TypeInfo]:
        """List the types with a handler, with pull workers or with the caller's defaults, in order of name."""
        return pages(self._session, TYPES, "types", partial(read, TypeInfo))

    @Operation
    def get(self, name: str) -> Request[TypeInfo]:
        """One type."""
        return Request("GET", _path_of(name), one(TypeInfo))

    @Operation
    def put(self, name: str, /, **options: Unpack[TypeOptions]) -> Request[TypeInfo]:
        """Set the options that the caller's tasks of a type have by default.

        The options replace defaults that the caller set before, and take precedence over a handler's defaults; `None`
        turns off a handler's default.
        """
        return Request("PUT", _path_of(name), one(TypeInfo), body=body_of(options), repeatable=True)

    @Operation
    def delete(self, name: str) -> Request[TypeInfo]:
        """Delete the defaults that the caller set, and return the type as it was before."""
        return Request("DELETE", _path_of(name), one(TypeInfo))


class Types(TypeOperations, SyncResource):
    """`client.types` of `Client`."""


class AsyncTypes(TypeOperations, AsyncResource):
    """`client.types` of `AsyncClient`."""


def _path_of(name: str) -> str:
    return f"{TYPES}/{segment(name)}"
