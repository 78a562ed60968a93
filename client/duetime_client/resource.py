"""Resources of the API: groups of operations, each written once for `Client` and `AsyncClient`.

A class `…Operations` contains the operations. Its two subclasses bind the operations to a client, which determines the
return types: `Task` and `Iterator[Task]`, or `Coroutine[Any, Any, Task]` and `AsyncIterator[Task]`.
"""

from __future__ import annotations

from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from duetime_client.io_operations import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from duetime_client.io_operations import Items, Steps
    from duetime_client.io_runners import AsyncRunner, Runner
    from duetime_client.session import Session

P = ParamSpec("P")
T = TypeVar("T")


class Resource:
    """The operations of a resource."""

    def __init__(self, runner: Any) -> None:  # noqa: ANN401 - its subclasses say which
        self._runner = runner

    @property
    def _session(self) -> Session:
        """The session that describes and sends requests."""
        session: Session = self._runner.session
        return session


class SyncResource(Resource):
    """A resource of `Client`."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)


class AsyncResource(Resource):
    """A resource of `AsyncClient`."""

    def __init__(self, runner: AsyncRunner) -> None:
        super().__init__(runner)


class Operation(Generic[P, T]):
    """Turns a method that describes a request or steps into a method that returns a result."""

    def __init__(self, build: Callable[Concatenate[Any, P], Request[T] | Steps[T]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: SyncResource, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(self, instance: AsyncResource, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> object:
            return instance._runner.run(self.steps(instance, *args, **kwargs))  # noqa: SLF001 - a method of it

        return update_wrapper(call, MethodType(self.build, instance))

    def steps(self, resource: Resource, *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
        """The steps of one call, for operations composed of other operations."""
        described = self.build(resource, *args, **kwargs)
        return resource._session.send(described) if isinstance(described, Request) else described  # noqa: SLF001 - same


class Stream(Generic[P, T]):
    """Turns a method that describes steps into a method that returns an iterator."""

    def __init__(self, build: Callable[Concatenate[Any, P], Items[T]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: SyncResource, owner: type) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, instance: AsyncResource, owner: type) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> object:
            return instance._runner.stream(self.build(instance, *args, **kwargs))  # noqa: SLF001 - a method of it

        return update_wrapper(call, MethodType(self.build, instance))
