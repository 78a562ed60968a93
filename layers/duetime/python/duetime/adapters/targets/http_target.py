"""HTTP endpoints: `PUT {url}?action={phase}` to have them work, `GET {url}?action={query}` to ask them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.adapters.targets.envelope import envelope, result_of
from duetime.adapters.targets.http_messages import NOT_SENT, OURS, TIMEOUT, Call, Caller, HttpResponse, NoResponse
from duetime.domain.errors import TargetSilent, TargetUnreachable, Unavailable
from duetime.domain.limits import MAX_QUERY_ANSWER_BYTES, MAX_RESULT_BYTES, QUERY_TIMEOUT
from duetime.domain.tasks.attempt_results import Deferred, Ending, NotSent, Succeeded, TargetEnding, failure
from duetime.domain.tasks.placeholders import filled_url
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.trace_context import TRACEPARENT
from duetime.domain.times import DAY, SECOND, to_iso
from duetime.ports.targets import QueryResponse

if TYPE_CHECKING:
    from duetime.domain.tasks.targets import HttpTarget, Query
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work

OK = range(200, 300)
_ACCEPTED = 202
_CLIENT_ERRORS = range(400, 500)
_RETRIABLE = frozenset({408, 425, 429})
"""Client errors that time repairs (Source: RFC 9110, RFC 8470, RFC 6585)."""
_USER_AGENT = {"User-Agent": "duetime"}


@dataclass(frozen=True, slots=True)
class HttpRunner:
    """Calls HTTP endpoints.

    Attributes:
        caller: makes the calls.
    """

    caller: Caller

    def run(self, target: HttpTarget, work: Work) -> TargetEnding:
        """Call the endpoint; any answer but 2xx fails the attempt."""
        task = work.task
        reply = self.caller.call(
            Call(
                id=f"{task.id}-{task.fence}-{work.phase}",
                method="PUT",
                url=_asking_for(filled_url(target.url, task), work.phase),
                headers={
                    **_facts(task),
                    "Content-Type": "application/json",
                    "Idempotency-Key": task.id.text,
                    "Duetime-Deadline": to_iso(work.deadline),
                },
                body=envelope(work),
                seconds=work.seconds,
                most=MAX_RESULT_BYTES,
                owner=task.owner,
            )
        )
        if isinstance(reply, NoResponse):
            if reply.kind in NOT_SENT:
                return NotSent(f"{reply.kind}: {reply.message}")
            return failure(reply.kind, reply.message, retriable=reply.retriable)
        return _ending(reply, work.phase)

    def ask(self, target: HttpTarget, task: Task, query: Query, nonce: str) -> QueryResponse:
        """Ask the endpoint about a task; whatever it answers is its answer.

        Raises:
            TargetSilent: it did not answer in time.
            TargetUnreachable: it may not be called, cannot be reached, or answers more than anybody reads.
            Unavailable: the call could not be handed on or signed.
        """
        reply = self.caller.call(
            Call(
                # Asked twice, it is to answer twice: no two questions share an id.
                id=f"{task.id}-{task.fence}-{query}-{nonce}",
                method="GET",
                url=_asking_for(filled_url(target.url, task), query),
                headers=_facts(task),
                seconds=QUERY_TIMEOUT / SECOND,
                most=MAX_QUERY_ANSWER_BYTES,
                owner=task.owner,
            )
        )
        if isinstance(reply, HttpResponse):
            return QueryResponse(reply.status, result_of(reply.body))
        if reply.kind == TIMEOUT:
            raise TargetSilent(reply.message)
        if reply.kind in OURS:
            raise Unavailable(f"{reply.kind}: {reply.message}")
        raise TargetUnreachable(f"{reply.kind}: {reply.message}")


def _asking_for(url: str, action: Phase | Query) -> str:
    """The URL with the action in its query; what may stand behind it, a fragment, is not sent anyway."""
    url = url.partition("#")[0]
    return f"{url}{'&' if '?' in url else '?'}action={action}"


def _facts(task: Task) -> dict[str, str]:
    return {
        **_USER_AGENT,
        **trace_header(task),
        "Duetime-Task": task.id.text,
        "Duetime-Attempt": str(task.attempt),
        "Duetime-Fence": str(task.fence),
        "Duetime-Due-At": to_iso(task.due_at),
        **_parents(task),
    }


def _parents(task: Task) -> dict[str, str]:
    """The schedule and the topology that a task belongs to; their names have visible ASCII characters only."""
    run, node = task.schedule_run, task.node_ref
    schedule = {} if run is None else {"Duetime-Schedule": run.schedule, "Duetime-Scheduled-At": to_iso(run.nominal)}
    topology = {} if node is None else {"Duetime-Topology": node.topology.text, "Duetime-Node": node.key}
    return schedule | topology


def trace_header(task: Task) -> dict[str, str]:
    """The trace in which a task was created, if it is known."""
    return {} if task.traceparent is None else {TRACEPARENT: task.traceparent}


def _ending(answer: HttpResponse, phase: Phase) -> Ending:
    status = answer.status
    if status == _ACCEPTED and phase is Phase.RUN:
        return Deferred()
    if status in OK:
        return Succeeded(result_of(answer.body))
    text = answer.body[:200].decode("utf-8", "replace")
    wait = _retry_after(answer.retry_after)
    message = f"the endpoint answered {status}: {text}"
    return failure(f"Http{status}", message, retriable=passes_with_time(status), wait_at_least=wait)


def passes_with_time(status: int) -> bool:
    """Whether another call may be answered better; a redirect is not followed then either."""
    return status in _RETRIABLE or status >= _CLIENT_ERRORS.stop


def _retry_after(text: str) -> int:
    """Milliseconds of a `Retry-After` in whole seconds; other forms are ignored."""
    return min(int(text) * SECOND, DAY) if text.isascii() and text.isdigit() and len(text) < len("1000000") else 0
