"""Runs executions of the deployed state machine in virtual time by interpreting its definition.

Source: Amazon States Language (states, paths, retriers, catchers); only features that the definition uses are
    supported.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime.domain.times import SECOND
from duetime_testing.fakes.stepfunctions import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.times import Millis
    from duetime_testing.fakes.stepfunctions import Execution, FakeStepFunctions
    from duetime_testing.simulation.virtual_time import Strand, VirtualTime

DEFINITION = Path(__file__).with_name("topology_machine.json")
"""A copy of `infra.topology_state_machine.definition`, so that simulations do not need the CDK; a test compares the
two."""
_STEP = re.compile(r"\.([A-Za-z_]+)|\[(\d+)\]")
_WAITS = ".waitForTaskToken"
_FAR = 400 * 86_400 * SECOND
_FRAMING = {"Map": 4, "Fail": 1}
"""The number of history events that a state adds, apart from its attempts and iterations. The default is 2 (entered and
exited); a map also has started and ended events. Source: Step Functions API Reference, HistoryEvent."""


class StateFailed(Exception):
    """A state failed with an error."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.cause = cause


@dataclass
class StateMachine:
    """Interprets a state machine's definition.

    Attributes:
        invoke: invokes a state's function with a payload, and returns the response or raises `StateFailed`.
        entered: number of entries into each state, including retries; Step Functions bills each entry.
        events: total number of history events in all executions, including the child executions of distributed maps.
    """

    time: VirtualTime
    states: FakeStepFunctions
    invoke: Callable[[Mapping[str, Any]], Any]
    definition: Mapping[str, Any] = field(default_factory=lambda: json.loads(DEFINITION.read_text(encoding="utf-8")))
    entered: Counter[str] = field(default_factory=Counter)
    events: int = 0

    def begin(self, execution: Execution) -> None:
        """Start running an execution."""
        strand = self.time.start_process(partial(self._execute, execution))
        execution.over = lambda: self.time.kill(strand)

    def _execute(self, execution: Execution) -> None:
        self.events += 2  # the execution's start and end
        try:
            self._run(self.definition, json.loads(execution.input), {})
        except StateFailed as failure:
            execution.end(Status.FAILED, self.time.now(), failure.error, failure.cause)
        else:
            execution.end(Status.SUCCEEDED, self.time.now())

    def _run(self, machine: Mapping[str, Any], given: Any, context: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        name: str | None = machine["StartAt"]
        while name is not None:
            state = machine["States"][name]
            self.events += _FRAMING.get(state["Type"], 2)
            try:
                result = self._with_retries(name, state, given, context)
            except StateFailed as failure:
                catcher = next((each for each in state.get("Catch", ()) if _matches(each, failure.error)), None)
                if catcher is None:
                    raise
                given_error = {"Error": failure.error, "Cause": failure.cause}
                given, name = _put(given, catcher.get("ResultPath", "$"), given_error), catcher["Next"]
                continue
            if state["Type"] == "Choice":
                name = result
                continue
            if state["Type"] in {"Task", "Map"}:
                if "ResultSelector" in state:
                    result = _filled(state["ResultSelector"], result, context)
                given = _put(given, state.get("ResultPath", "$"), result)
            name = None if state.get("End") or state["Type"] == "Succeed" else state["Next"]
        return given

    def _with_retries(
        self,
        name: str,
        state: Mapping[str, Any],
        given: Any,  # noqa: ANN401 - same
        context: Mapping[str, Any],
    ) -> Any:  # noqa: ANN401 - same
        """Enter a state, and retry it according to its retriers."""
        tries: dict[int, int] = {}
        while True:
            state_context = {**context, "State": {"RetryCount": sum(tries.values())}}
            self.entered[name] += 1
            try:
                return self._enter(state, given, state_context)
            except StateFailed as failure:
                retriers: list[Mapping[str, Any]] = state.get("Retry", [])
                number = next((n for n, each in enumerate(retriers) if _matches(each, failure.error)), None)
                if number is None:
                    raise
                retrier, tried = retriers[number], tries.get(number, 0)
                if tried >= retrier.get("MaxAttempts", 3):
                    raise
                tries[number] = tried + 1
                wait = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2) ** min(tried, 30)
                self._sleep(min(wait, retrier.get("MaxDelaySeconds", wait)))

    def _enter(self, state: Mapping[str, Any], given: Any, context: dict[str, Any]) -> Any:  # noqa: ANN401 - same
        match state["Type"]:
            case "Task":
                return self._task(state, given, context)
            case "Choice":
                return _chosen(state, given)
            case "Wait":
                return self._sleep(_at(state["SecondsPath"], given, context))
            case "Map":
                return self._map(state, given, context)
            case "Succeed":
                return given
            case "Fail":
                raise StateFailed(state["Error"], state.get("Cause", ""))
        raise NotImplementedError(state["Type"])

    def _task(self, state: Mapping[str, Any], given: Any, context: dict[str, Any]) -> Any:  # noqa: ANN401 - same
        self.events += 3  # scheduled, started, ended
        if not state["Resource"].endswith(_WAITS):
            return {"Payload": self.invoke(_filled(state["Parameters"], given, context)["Payload"])}
        self.events += 1  # submitted
        name = self.states.token()
        token, strand = self.states.tokens[name], self.time.current()
        token.woken = partial(self.time.nudge, strand)
        until = self.time.now() + state.get("TimeoutSeconds", _FAR) * SECOND
        silent_at = self.time.now() + state.get("HeartbeatSeconds", _FAR) * SECOND
        try:
            context["Task"] = {"Token": name}
            # The function's response is ignored, because the state's result is reported with the token.
            self.invoke(_filled(state["Parameters"], given, context)["Payload"])
            while token.output is None:
                if self.time.now() >= min(until, silent_at):
                    raise StateFailed("States.HeartbeatTimeout" if silent_at < until else "States.Timeout")
                self.time.sleep_until(min(until, silent_at))
        finally:
            token.waits = False
        (output,) = token.output
        return output

    def _map(self, state: Mapping[str, Any], given: Any, context: dict[str, Any]) -> Any:  # noqa: ANN401 - same
        items = list(enumerate(_at(state["ItemsPath"], given, context)))
        processor = state["ItemProcessor"]
        results: dict[int, Any] = {}
        failures: list[StateFailed] = []

        def work(number: int, item: Any) -> None:  # noqa: ANN401 - same
            self.events += 2  # the iteration's start and end
            about = {**context, "Map": {"Item": {"Index": number, "Value": item}}}
            inside = _filled(state["ItemSelector"], given, about) if "ItemSelector" in state else item
            try:
                results[number] = self._run(processor, inside, about)
            except StateFailed as failure:
                failures.append(failure)

        most = state.get("MaxConcurrency") or len(items)
        going: list[Strand] = []
        while (items or any(not each.done for each in going)) and not failures:
            going = [each for each in going if not each.done]
            while items and len(going) < most:
                going.append(self.time.start(partial(work, *items.pop(0))))
            self.time.wait(going, self.time.now() + _FAR)
        if failures:
            for each in going:
                self.time.kill(each)
            raise failures[0]
        return [results[number] for number in sorted(results)]

    def _sleep(self, seconds: float) -> None:
        until: Millis = self.time.now() + int(seconds * SECOND)
        while self.time.now() < until:
            self.time.sleep_until(until)


def _matches(rule: Mapping[str, Any], error: str) -> bool:
    return "States.ALL" in rule["ErrorEquals"] or error in rule["ErrorEquals"]


def _chosen(state: Mapping[str, Any], given: Any) -> str:  # noqa: ANN401 - any JSON
    for choice in state["Choices"]:
        if _at(choice["Variable"], given, {}) is choice["BooleanEquals"]:
            return str(choice["Next"])
    return str(state["Default"])


def _at(path: str, given: Any, context: Mapping[str, Any]) -> Any:  # noqa: ANN401 - same
    """The value at a path in the input, or in the context if the path begins with `$$`."""
    value: Any = context if path.startswith("$$") else given
    rest = path.lstrip("$")
    for name, number in _STEP.findall(rest):
        value = value[name] if name else value[int(number)]
    return value


def _filled(template: Any, given: Any, context: Mapping[str, Any]) -> Any:  # noqa: ANN401 - same
    """Return a template with resolved paths."""
    if not isinstance(template, dict):
        return template
    return {
        name.removesuffix(".$"): _at(value, given, context) if name.endswith(".$") else _filled(value, given, context)
        for name, value in template.items()
    }


def _put(given: Any, path: str | None, result: Any) -> Any:  # noqa: ANN401 - same
    """Return the input with a result at a path; the path `None` discards the result."""
    if path is None:
        return given
    if path == "$":
        return result
    (name,) = (each for each, _ in _STEP.findall(path[1:]))
    return {**given, name: result}
