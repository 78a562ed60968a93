"""Converts the API's responses to validated models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from duetime_client.polling import utc_now
from duetime_client.problems import document_of, error_of_problem, seconds_of, unexpected_response
from duetime_client.task import Attempt, ResponseModel, TargetReply, Task, TaskCount

if TYPE_CHECKING:
    import httpx

    from duetime_client.errors import ApiError

M = TypeVar("M", bound=ResponseModel)


def read(model: type[M], response: httpx.Response, document: object) -> M:
    """Read a part of a response as a model.

    Raises:
        UnexpectedResponse: The part does not match the model.
    """
    if not isinstance(document, Mapping):
        raise unexpected_response(response, "the response has an unexpected form")
    try:
        return model.of_document(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise unexpected_response(response, f"the response is not valid ({field}: {first['msg']})") from error


def one(model: type[M]) -> Callable[[httpx.Response], M]:
    """A decoder for a response that is one model."""
    return lambda response: read(model, response, document_of(response))


def count_of(response: httpx.Response) -> TaskCount:
    """How many tasks match the filters of a list."""
    match document_of(response):
        case {"applied": {"count": Mapping() as count}}:
            return read(TaskCount, response, count)
        case _:
            raise unexpected_response(response, "the response has no count")


def several(model: type[M], entries: str) -> Callable[[httpx.Response], list[M]]:
    """A decoder for a response with a list of models in a field."""

    def decode(response: httpx.Response) -> list[M]:
        match document_of(response):
            case Mapping() as document if isinstance(found := document.get(entries), list):
                return [read(model, response, each) for each in found]
            case _:
                raise unexpected_response(response, f"no {entries} in the response")

    return decode


def nothing(_response: httpx.Response) -> None:
    """A decoder that ignores the content of a response."""


ON_CONFLICT = "Duetime-On-Conflict"
"""Response header that is set when the returned task already held the unique key."""


def task_of(response: httpx.Response) -> Task:
    """The task in a response.

    Raises:
        UnexpectedResponse: The response contains no task.
    """
    task = task_in(response, document_of(response), response.headers.get("ETag"))
    return task.answering(response.headers.get(ON_CONFLICT))


def polled_task(response: httpx.Response) -> tuple[Task, float | None]:
    """The task in a response, and the suggested delay in seconds before the next poll.

    Raises:
        UnexpectedResponse: The response contains no task.
    """
    return task_of(response), seconds_of(response.headers.get("Retry-After"), utc_now())


def task_in(response: httpx.Response, document: object, etag: str | None = None) -> Task:
    """A task in a part of a response.

    Raises:
        UnexpectedResponse: The part is not a task.
    """
    if not isinstance(document, Mapping):
        raise unexpected_response(response, "no task in the response")
    try:
        return Task.of_document(document, etag)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise unexpected_response(response, f"the response's task is not valid ({field}: {first['msg']})") from error


def attempts_of(response: httpx.Response) -> list[Attempt]:
    """The attempts in a response.

    Raises:
        UnexpectedResponse: The response has no attempts that this client can read.
    """
    return several(Attempt, "attempts")(response)


def reply_of(response: httpx.Response) -> TargetReply:
    """The endpoint's reply in a response.

    Raises:
        UnexpectedResponse: The response contains no reply.
    """
    match document_of(response):
        case {"status": int() as status, "body": body}:
            return TargetReply.of_document({"status": status, "body": body})
        case _:
            raise unexpected_response(response, "no response of the target in the response")


def batch_results(response: httpx.Response, expected: int) -> Iterator[Task | ApiError]:
    """The result of each task of a batch.

    Raises:
        UnexpectedResponse: A task has no result.
    """
    match document_of(response):
        case {"results": list() as results} if len(results) == expected:
            for result in results:
                yield batch_result(response, result)
        case _:
            raise unexpected_response(response, "no result for each task in the response")


def batch_result(response: httpx.Response, result: object) -> Task | ApiError:
    """The result of one task of a batch."""
    match result:
        case {"task": document}:
            return task_in(response, document)
        case {"status": int() as status, "problem": problem}:
            return error_of_problem(status, problem)
        case _:
            raise unexpected_response(response, "a result is neither a task nor a problem")
