from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.tasks import operations
from functions.api import routing
from functions.api.responses import Response
from functions.api.routing import BindingWrong, require_all_bound, route

if TYPE_CHECKING:
    from functions.api.requests import Request


def _ok(request: Request) -> Response:  # noqa: ARG001 - any handler
    return Response(200)


def test_every_operation_of_the_contract_has_its_handler() -> None:
    """The function that starts has bound each declared operation."""
    require_all_bound()


def test_a_second_handler_is_refused_when_it_is_bound() -> None:
    """An operation that is bound twice stops the function from starting."""
    with pytest.raises(BindingWrong, match="createTask has two handlers"):
        route(operations.CREATE)(_ok)


def test_an_operation_without_a_handler_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten operation is named when the function starts."""
    monkeypatch.delitem(routing._HANDLERS, operations.PAUSE)
    with pytest.raises(BindingWrong, match="pauseTask"):
        require_all_bound()


def test_a_handler_of_an_operation_that_is_not_the_apis_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that no module of the contract declares is named when the function starts."""
    strange = Operation("strange", "GET /v1/strange", "Nothing", Returns(dict, "Nothing."))
    monkeypatch.setitem(routing._HANDLERS, strange, _ok)
    with pytest.raises(BindingWrong, match="strange"):
        require_all_bound()
