"""From the API's responses to validated tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import ValidationError

from duetime_client.problems import document_of, error_of_problem, unexpected_response
from duetime_client.task import Attempt, TargetReply, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from duetime_client.errors import ApiError


def task_of(response: httpx.Response) -> Task:
    """The task in a response.

    Raises:
        UnexpectedResponse: There is none.
    """
    return task_in(response, document_of(response), response.headers.get("ETag"))


def task_in(response: httpx.Response, document: object, etag: str | None = None) -> Task:
    """A task in a part of a response.

    Raises:
        UnexpectedResponse: It is not a task.
    """
    if not isinstance(document, Mapping):
        raise unexpected_response(response, "no task in the response")
    try:
        return Task.of_document(document, etag)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise unexpected_response(response, f"the response's task is not valid ({field}: {first['msg']})") from error


def page_of(response: httpx.Response) -> tuple[list[Task], str | None]:
    """The tasks of one page and the token of the next, if there is one.

    Raises:
        UnexpectedResponse: The response is not a page.
    """
    match document_of(response):
        case {"tasks": list() as tasks, **rest}:
            token = rest.get("next_token")
            return [task_in(response, task) for task in tasks], str(token) if token else None
        case _:
            raise unexpected_response(response, "no page of tasks in the response")


def attempts_of(response: httpx.Response) -> list[Attempt]:
    """The attempts in a response.

    Raises:
        UnexpectedResponse: It has none that this client can read.
    """
    match document_of(response):
        case {"attempts": list() as attempts}:
            try:
                return [Attempt.of_document(attempt) for attempt in attempts]
            except ValidationError as error:
                raise unexpected_response(response, "an attempt in the response is not valid") from error
        case _:
            raise unexpected_response(response, "no attempts in the response")


def reply_of(response: httpx.Response) -> TargetReply:
    """The response of an endpoint, as the API returns it.

    Raises:
        UnexpectedResponse: There is none.
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
