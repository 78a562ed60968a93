"""Calls Python handlers, which the user's handler package registers."""

from __future__ import annotations

import functools
import importlib
import json
import math
import sys
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.domain.errors import Unavailable
from duetime.domain.json_values import ValueRefused
from duetime.domain.limits import MAX_ERROR_MESSAGE_LENGTH, MAX_PROGRESS_MESSAGE_LENGTH, MAX_TRACEBACK_LENGTH
from duetime.domain.operating_parameters import HANDLERS_RETRY
from duetime.domain.tasks.attempt_results import (
    Deferred,
    Ending,
    Stopped,
    Succeeded,
    Yielded,
    failure,
    shortened,
)
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import Progress
from duetime.domain.tasks.type_defaults import HandlerDescription
from duetime.domain.times import SECOND, to_datetime
from duetime.domain.tracebacks import class_name, message_of, traceback_of
from duetime.handlers import (
    REGISTRY,
    Accepted,
    AttemptCancelled,
    AttemptPaused,
    Context,
    HandlerTimeout,
    LeaseLost,
    Registered,
    RunSchedule,
    RunTopology,
    Unretriable,
)
from duetime.handlers.payload_codec import encoded, present_codec, readable
from duetime_common.frozen_classes import frozen
from duetime_common.handler_batches import BatchItem, BatchResultInvalid, error_of
from duetime_common.handler_retries import requested_wait
from duetime_common.payload_codecs import (
    CodecMissing,
    decrypted_json,
    decrypted_within,
    encrypted_json,
    encrypted_text,
    value_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.adapters.targets.packaged_work import PackagedHandlers
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.task import NodeRef, ScheduleRef, Task
    from duetime.domain.times import Millis
    from duetime.handlers.task_handlers import NewEventLoop
    from duetime.ports.runtime import Clock
    from duetime.ports.targets import BatchGroups, HandlerPackage, Work
    from duetime_common.handler_batches import Batch
    from duetime_common.handler_retries import RetryRule

    ClientOfCaller: TypeAlias = Callable[[], Any]
    """Returns a `duetime_client.Client` or, in a coroutine, an `AsyncClient`."""

_MAY_OFFER = frozenset({Phase.RUN, Phase.CLEAN, Phase.ROLLBACK})
"""Phases assumed while a handler package is broken, so that no cleanup or rollback is skipped."""
_NOT_JSON = "the handler's result is not JSON"


def known_types(module: str) -> frozenset[str] | None:
    """The types with a handler, from a module that the layer build writes; `None` if the types are unknown."""
    if not module:
        return None
    try:
        return frozenset(importlib.import_module(module).TYPES)
    except ImportError:
        return None


def handler_descriptions(module: str) -> Mapping[str, HandlerDescription]:
    """The handler descriptions in the module that the layer build writes, by type."""
    try:
        forms = getattr(importlib.import_module(module), "HANDLERS", {}) if module else {}
    except ImportError:
        return {}
    return {name: HandlerDescription(**form) for name, form in forms.items()}


class HandlersPackage:
    """The user's handler package, which registers its handlers when the package is imported.

    If the import fails, the error is kept, and the import is retried after a while, because the failure may be
    temporary, for example if a service did not respond.

    Args:
        name: the package's import name; empty if there is no package.
        clock: the clock for retrying the import.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._lock = Lock()
        self._loaded = not name
        self._why: str | None = None
        self._tried_at: Millis | None = None

    def why_broken(self) -> str | None:
        """Import the package if needed, and return why it cannot be imported.

        The result is `None` if the package is imported, or there is no package.
        """
        if self._loaded:
            return None
        with self._lock:
            now = self._clock.now()
            if not self._loaded and (self._tried_at is None or now - self._tried_at >= HANDLERS_RETRY):
                self._tried_at = now
                self._why = self._imported()
                self._loaded = self._why is None
            return self._why

    def _imported(self) -> str | None:
        registered = dict(REGISTRY)
        try:
            importlib.import_module(self._name)
        except BaseException as error:  # noqa: BLE001 - a package may raise any exception
            # Handlers that were registered before the error are removed, because the next import registers them again.
            REGISTRY.clear()
            REGISTRY.update(registered)
            for module in [name for name in sys.modules if f"{name}.".startswith(f"{self._name}.")]:
                del sys.modules[module]
            return shortened(f"{class_name(error)}: {message_of(error)}", MAX_ERROR_MESSAGE_LENGTH)
        return None


@frozen
class HandlerRunner:
    """Calls the handler for the task's type in this process.

    Attributes:
        registry: handlers by task type.
        package: the user's handler package.
        new_event_loop: creates the event loop for a coroutine; `None` for asyncio's default loop.
        clients: creates the clients for a phase at their first use; `None` if there are no clients.
        packaged: calls the handlers of packages that have their own functions; `None` if there are no such packages.
    """

    registry: Mapping[str, Registered]
    package: HandlerPackage
    new_event_loop: NewEventLoop | None = None
    clients: Callable[[Work], ClientOfCaller] | None = None
    packaged: PackagedHandlers | None = None

    def phases(self, task: Task) -> frozenset[Phase]:
        """The phases that the handler supports. A task without a handler has only the phase `run`, which will fail."""
        if self.packaged is not None and self.packaged.types.function_of(task.type) is not None:
            return self.packaged.phases(task)
        registered = self.registry.get(task.type)
        if registered is not None:
            return frozenset(map(Phase, registered.phases))
        return frozenset({Phase.RUN}) if self.package.why_broken() is None else _MAY_OFFER

    def run(self, work: Work) -> TargetEnding:
        """Run one phase of the handler. Every exception becomes an ending of the attempt."""
        task_type = work.task.type
        if self.packaged is not None and (function := self.packaged.types.function_of(task_type)) is not None:
            return self.packaged.run(function, work)
        registered = self.registry.get(task_type)
        if registered is None and (why := self.package.why_broken()) is not None:
            return failure("HandlersUnavailable", why)
        if registered is None:
            return failure("HandlerUnknown", f"no handler is registered for the type {task_type!r}", retriable=False)
        if registered.batch is not None and work.batch_groups is not None:
            return self._run_with_others(registered, registered.batch, work, work.batch_groups())
        try:
            result = registered.call(
                work.phase,
                _context(work, self.clients),
                readable(value_in(work.payload)),
                seconds=work.seconds,
                new_event_loop=self.new_event_loop,
            )
        except BaseException as error:  # noqa: BLE001 - a handler may raise any exception
            return _ended_by(error, work.task, registered.retry_rule)
        return _ended_with(result, work.phase)

    def _run_with_others(
        self, registered: Registered, batch: Batch, work: Work, batch_groups: BatchGroups
    ) -> TargetEnding:
        """Run a batch handler for tasks with the same type, key and timeout."""
        task = work.task
        try:
            item = BatchItem(_context(work, self.clients), registered.decode(readable(value_in(work.payload))))
            key = task.type, batch.key_of(item.payload)
        except BaseException as error:  # noqa: BLE001 - the payload's class and the key are the author's code
            return _ended_by(error, task, registered.retry_rule)
        # The module is imported here, because most handlers take one task at a time.
        from duetime.adapters.targets.shared_calls import share_call  # noqa: PLC0415 - see above

        return share_call(
            batch_groups,
            work,
            item,
            functools.partial(self._call_batch, registered),
            key=key,
            max_size=batch.max_size,
            max_wait_seconds=batch.max_wait_seconds,
        )

    def _call_batch(
        self, registered: Registered, members: Sequence[tuple[Work, BatchItem[Context, object]]], seconds: float
    ) -> list[Ending]:
        try:
            outcomes = registered.call_batch(
                [item for _, item in members], seconds=seconds, new_event_loop=self.new_event_loop
            )
        except BaseException as error:  # noqa: BLE001 - as above
            return [_ended_by_all(error, work, registered.retry_rule) for work, _ in members]
        return [
            _ended_with(outcome, Phase.RUN)
            if (failed := error_of(outcome)) is None
            else _ended_by(failed, work.task, registered.retry_rule)
            for (work, _), outcome in zip(members, outcomes, strict=True)
        ]


def _ended_by_all(error: BaseException, work: Work, rule: RetryRule) -> Ending:
    """The ending of one attempt in a batch whose handler raised an exception."""
    if issubclass(type(error), AttemptPaused | AttemptCancelled) and work.requested_action() is None:
        return failure(
            "BatchStopped", "the handler stopped the batch because of a request to another task in the batch"
        )
    return _ended_by(error, work.task, rule)


def _ended_with(result: object, phase: Phase) -> Ending:
    """The ending of an attempt whose handler returned a value."""
    if issubclass(type(result), Accepted):
        return _deferred(phase)
    return _encoded(result, Succeeded)


def _ended_by(error: BaseException, task: Task, rule: RetryRule) -> Ending:
    """The ending of an attempt whose handler raised an exception."""
    # `type` returns the real class; an object's `__class__` may return anything.
    kind = type(error)
    if issubclass(kind, AttemptPaused):
        return _encoded(error.checkpoint, Yielded)  # type: ignore[attr-defined]  # see above
    if issubclass(kind, AttemptCancelled):
        return Stopped()
    if issubclass(kind, HandlerTimeout):
        return failure("Timeout", f"the handler was cancelled: it did not end within {task.timeout_seconds} s")
    # The handler's retry rule does not apply to these errors, because steps and checkpoints raise them.
    is_ours = issubclass(kind, LeaseLost | Unavailable)
    is_final = issubclass(kind, Unretriable | BatchResultInvalid | CodecMissing)
    retriable = is_ours or (rule.allows(error) and not is_final)
    failed = failure(class_name(error), _message(message_of(error)), retriable=retriable)
    seconds = requested_wait(error)
    retry_in = None if seconds is None else math.ceil(seconds * SECOND)
    raised = encrypted_text(present_codec(), traceback_of(error), MAX_TRACEBACK_LENGTH, keeps_end=True)
    return replace(failed, retry_in=retry_in, traceback=raised)


def _message(text: str) -> str:
    """The shortened text of a handler's exception, which is encrypted if there is a codec."""
    return encrypted_text(present_codec(), shortened(text, MAX_ERROR_MESSAGE_LENGTH))


def _deferred(phase: Phase) -> Ending:
    if phase is Phase.RUN:
        return Deferred()
    return failure("PhaseDeferred", f"only `run` can be deferred, not `{phase}`", retriable=False)


class _ClientOnFirstUse:
    """Creates the `context.client` of one phase at first use, because most handlers do not use it."""

    def __init__(self, clients: Callable[[Work], ClientOfCaller], work: Work) -> None:
        self._clients = clients
        self._work = work
        self._found: ClientOfCaller | None = None

    def __call__(self) -> Any:  # noqa: ANN401 - a client, which is not imported here
        """Return the client that fits the caller."""
        if self._found is None:
            self._found = self._clients(self._work)
        return self._found()


def _context(work: Work, clients: Callable[[Work], ClientOfCaller] | None) -> Context:
    def report(percent: int | None, message: str) -> None:
        codec = present_codec()
        if codec is not None:
            message = encrypted_text(codec, message[:MAX_PROGRESS_MESSAGE_LENGTH])
        work.report(None if percent is None else Progress(percent, message))

    return Context(
        task_id=work.task.id.text,
        type=work.task.type,
        attempt=work.task.attempt,
        fence=work.task.fence,
        deadline=to_datetime(work.deadline),
        checkpoint=None if work.checkpoint is None else json.loads(decrypted_json(present_codec(), work.checkpoint)),
        report=report,
        ask=work.requested_action,
        inputs=_inputs(work),
        traceparent=work.task.traceparent,
        due_at=to_datetime(work.task.due_at),
        created_at=to_datetime(work.task.created_at),
        lateness_ms=work.task.lateness,
        schedule=_schedule(work.task.schedule_run),
        topology=_topology(work.task.node_ref),
        tags=work.task.tags,
        phase=work.phase.value,
        step_keeper=work.step_keeper,
        checkpoint_writer=work.save_checkpoint,
        clients=None if clients is None else _ClientOnFirstUse(clients, work),
    )


def _inputs(work: Work) -> Any:  # noqa: ANN401 - any JSON
    inputs, codec = None if work.inputs is None else json.loads(work.inputs), present_codec()
    return inputs if codec is None else decrypted_within(codec, inputs)


def _schedule(run: ScheduleRef | None) -> RunSchedule | None:
    if run is None:
        return None
    before, after = (None if at is None else to_datetime(at) for at in (run.previous, run.next))
    return RunSchedule(run.schedule, to_datetime(run.nominal), before, after, run.cause.value)


def _topology(node: NodeRef | None) -> RunTopology | None:
    return None if node is None else RunTopology(node.topology.text, node.run, node.key)


def _encoded(value: object, ending: Callable[[bytes], Ending]) -> Ending:
    """The ending of an attempt with a value, which is encoded as JSON and, if there is a codec, encrypted."""
    try:
        data = encoded(value)
    except ValueRefused as refused:
        why = f"{_NOT_JSON}: {refused}"
    except BaseException as error:  # noqa: BLE001 - the value may be of the author's own class
        why = _message(f"{_NOT_JSON}: {class_name(error)}: {message_of(error)}")
    else:
        return _encrypted(data, ending)
    return failure("ResultNotJson", why, retriable=False)


def _encrypted(data: bytes, ending: Callable[[bytes], Ending]) -> Ending:
    try:
        return ending(encrypted_json(present_codec(), data))
    except BaseException as error:  # noqa: BLE001 - a codec may raise any exception
        # The error's message is left out, because it may quote the value. A retry may succeed if a key service failed.
        return failure("CodecFailed", f"the codec could not encrypt the value: {class_name(error)}")
