"""Manages intake rules, and creates, cancels and wakes tasks for incoming events."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from duetime.domain.errors import IntakeRuleNotFound, IntakeRulesFull, RecordUnreadable, RequestError, Unavailable
from duetime.domain.intake_rules import IntakeEvent
from duetime.domain.limits import MAX_INTAKE_RULES
from duetime.domain.operating_parameters import INTAKE_RULES_LIFE
from duetime.domain.tasks.creation import Order
from duetime.domain.tracebacks import places_of
from duetime.ports.queues import Reject
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime.domain.bulk import EventRequest
    from duetime.domain.callers import Caller
    from duetime.domain.intake_rules import IntakeRule, IntakeRules
    from duetime.domain.times import Millis
    from duetime.ports.queues import Rejects
    from duetime.ports.runtime import Runtime, Telemetry
    from duetime.ports.stores import IntakeRuleStore
    from duetime.services.bulk.filter_actions import BulkRequests
    from duetime.services.tasks.create import BatchCreator

_TRIES = 20


@frozen
class IntakeRuleAdmin:
    """Shows and sets a deployment's intake rules."""

    store: IntakeRuleStore
    runtime: Runtime

    def list(self) -> Sequence[IntakeRule]:
        """All rules, sorted by name."""
        found = self.store.read(consistent=True).by_name
        return [found[name] for name in sorted(found)]

    def get(self, name: str) -> IntakeRule:
        """One rule.

        Raises:
            IntakeRuleNotFound: no rule has that name.
        """
        return _rule(self.store.read(consistent=True), name)

    def put(self, caller: Caller, rule: IntakeRule) -> IntakeRule:
        """Set a rule, replacing any rule with the same name; the change takes effect within `INTAKE_RULES_LIFE`.

        Raises:
            IntakeRulesFull: there are too many rules, or their total size is too large.
            Unavailable: too many concurrent writes.
        """
        wanted = replace(rule, updated_at=self.runtime.now(), updated_by=caller.owner)

        def change(rules: IntakeRules) -> IntakeRules:
            changed = rules.put(wanted)
            if len(changed.by_name) > MAX_INTAKE_RULES:
                raise IntakeRulesFull(f"{MAX_INTAKE_RULES} intake rules")
            return changed

        self._change(change)
        return wanted

    def delete(self, name: str) -> IntakeRule:
        """Delete a rule, and return the deleted rule.

        Raises:
            IntakeRuleNotFound: no rule has that name.
            Unavailable: too many concurrent writes.
        """

        def change(rules: IntakeRules) -> IntakeRules:
            _rule(rules, name)
            return rules.without(name)

        return _rule(self._change(change), name)

    def _change(self, change: Callable[[IntakeRules], IntakeRules]) -> IntakeRules:
        """Apply a change to the current rules; returns the rules before the change."""
        for _ in range(_TRIES):
            before = self.store.read(consistent=True)
            if self.store.save(change(before), self.runtime.nonce()):
                return before
        raise Unavailable("too many concurrent writes to the intake rules; try again")


@dataclass(slots=True)
class IntakeRuleCache:
    """Caches the rules in one process, and reads them at most once every `INTAKE_RULES_LIFE`."""

    store: IntakeRuleStore
    runtime: Runtime
    _known: IntakeRules | None = field(default=None, init=False)
    _read_at: Millis = field(default=0, init=False)

    def rules(self) -> IntakeRules:
        """The rules, at most `INTAKE_RULES_LIFE` old.

        Raises:
            Unavailable: the rules cannot be read; the event must be delivered again.
        """
        now = self.runtime.now()
        if self._known is None or now - self._read_at >= INTAKE_RULES_LIFE:
            # An event without a matching rule is dropped, so outdated rules must not be used.
            self._known, self._read_at = self.store.read(consistent=True), now
        return self._known


def _rule(rules: IntakeRules, name: str) -> IntakeRule:
    found = rules.by_name.get(name)
    if found is None:
        raise IntakeRuleNotFound(name)
    return found


@frozen
class Arrival:
    """A delivered event.

    Attributes:
        id: id of the delivery.
        body: the text of the event, for people to read.
        wanted: the requested task, an event for intake rules, or, if the delivery is neither, the error.
    """

    id: str
    body: str
    wanted: Order | IntakeEvent | Exception


@frozen
class _Request:
    """One request of an arrival, either the arrival's own request or the request of a rule that its event matches."""

    arrival: Arrival
    wanted: Order | EventRequest | Exception
    owner: str


class RuleReader(Protocol):
    """Reads the requests that rules make for events."""

    def __call__(self, rule: IntakeRule, event: IntakeEvent) -> Order | EventRequest:
        """The request that a rule makes for an event that matches the rule.

        Raises:
            RequestError: the event lacks fields that the rule needs, or these fields have invalid values.
        """
        ...


@frozen
class EventTaskCreator:
    """Creates a task for each event, or applies the intake rules.

    A repeated delivery changes nothing, unless the event's task has a unique key.

    An event that can never be processed goes to the reject queue at once, with the reason, and is not delivered again.

    Attributes:
        owner: owner of the tasks that events request directly, without a rule.
        rule_cache: the rules in effect.
        read_rule: returns the function that reads the requests that rules make for events.
        bulk_requests: returns the service that cancels tasks by a filter and wakes tasks.
    """

    batch_creator: BatchCreator
    owner: str
    rule_cache: IntakeRuleCache
    read_rule: Callable[[], RuleReader]
    bulk_requests: Callable[[], BulkRequests]
    rejects: Rejects
    telemetry: Telemetry

    def take_in(self, arrivals: Sequence[Arrival]) -> list[str]:
        """Process a batch.

        Returns:
            Ids of deliveries to repeat, because the store or the reject queue did not answer, or processing failed.
        """
        requests = [each for arrival in arrivals for each in self._requests(arrival)]
        refused: dict[str, list[str]] = defaultdict(list)
        again: dict[str, None] = {}
        for request, failure in zip(requests, self._carry_out(requests), strict=True):
            id_ = request.arrival.id
            if isinstance(failure, RequestError):
                refused[id_].append(str(failure))
                self.telemetry.note("an event cannot be carried out", event=id_, error=type(failure).__name__)
            elif failure is not None:
                again[id_] = None
                self.telemetry.note("an event must be delivered again", event=id_, error=places_of(failure))
        # An event that must be delivered again is not sent to the reject queue yet.
        bodies = {arrival.id: arrival.body for arrival in arrivals}
        aside = {id_: Reject(bodies[id_], "; ".join(reasons)) for id_, reasons in refused.items() if id_ not in again}
        lost = self.rejects.put(list(aside.values())) if aside else []
        self.telemetry.count("intake_refused", len(aside) - len(lost))
        again |= {id_: None for id_, reject in aside.items() if reject in lost}
        return [*again]

    def _requests(self, arrival: Arrival) -> Iterator[_Request]:
        """The requests of an arrival, which are its own request, or a request for each rule that its event matches."""
        event = arrival.wanted
        if not isinstance(event, IntakeEvent):
            yield _Request(arrival, event, self.owner)
            return
        try:
            matching = self.rule_cache.rules().matching(event.value)
        except (Unavailable, RequestError, RecordUnreadable) as failure:
            yield _Request(arrival, failure, self.owner)
            return
        self.telemetry.count("intake_unmatched", not matching)
        for rule in matching:
            try:
                yield _Request(arrival, self.read_rule()(rule, event), rule.owner)
            except RequestError as refusal:
                yield _Request(arrival, refusal, rule.owner)

    def _carry_out(self, requests: Sequence[_Request]) -> list[Exception | None]:
        """Create, cancel and wake tasks; returns each request's failure in order, or `None` for a success."""
        failures = [self._requested(request) for request in requests]
        by_owner: dict[str, list[tuple[int, Order]]] = defaultdict(list)
        for index, request in enumerate(requests):
            if isinstance(request.wanted, Order):
                by_owner[request.owner].append((index, request.wanted))
        for owner, orders in by_owner.items():
            ends = self.batch_creator.create_each(owner, [order for _, order in orders])
            for (index, _), end in zip(orders, ends, strict=True):
                failures[index] = end if isinstance(end, Exception) else None
        self.telemetry.count("intake_tasks", sum(failures[at] is None for each in by_owner.values() for at, _ in each))
        return failures

    def _requested(self, request: _Request) -> Exception | None:
        """Cancel or wake tasks if the request asks for it; returns the request's failure, if any."""
        wanted = request.wanted
        if isinstance(wanted, Order | Exception):
            return wanted if isinstance(wanted, Exception) else None
        is_signal = wanted.request.signal is not None
        try:
            self.bulk_requests().take(request.owner, wanted.request, wanted.key, at_once=is_signal)
        except Exception as failure:  # noqa: BLE001 - other events of the batch must not fail too
            return failure
        if is_signal:
            self.telemetry.count("intake_signals", 1)
        else:
            self.telemetry.count("intake_cancels", 1)
        return None
