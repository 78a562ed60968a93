"""Intake rules, which decide which events create or cancel tasks, or wake tasks that wait for these events."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from duetime.domain.event_patterns import matches
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.creation import Origin
    from duetime.domain.times import Millis


class IntakeAction(StrEnum):
    """What an event does."""

    CREATE = "create"
    CANCEL = "cancel"
    SIGNAL = "signal"


@frozen
class IntakeEvent:
    """An event that is matched with intake rules.

    Attributes:
        value: the event in EventBridge's format.
        origin: the event's source, id and time.
    """

    value: Mapping[str, Any]
    origin: Origin


@frozen
class IntakeRule:
    """A rule that declares the action for events that match a pattern.

    Attributes:
        name: name of the rule, which is unique in a deployment.
        pattern: an EventBridge event pattern.
        action: what a matching event does.
        request: the task to create, the filter of the tasks to cancel, or the signal to send, in the form of the REST
            contract.
        fields: JMESPath expressions that set fields of `request` from the event, by the fields' dotted names.
        owner: owner of the tasks.
        description: human-readable description.
        updated_at: when the rule was last set.
        updated_by: who last set the rule.
    """

    name: str
    pattern: Mapping[str, Any]
    action: IntakeAction
    request: Mapping[str, Any]
    fields: Mapping[str, str]
    owner: str
    description: str = ""
    updated_at: Millis = 0
    updated_by: str = ""


@frozen
class IntakeRules:
    """All rules of a deployment.

    Attributes:
        version: incremented by every change; 0 if nothing is stored.
    """

    by_name: Mapping[str, IntakeRule] = field(default_factory=dict)
    version: int = 0

    def put(self, rule: IntakeRule) -> IntakeRules:
        """A copy with a rule added or replaced."""
        return replace(self, by_name={**self.by_name, rule.name: rule})

    def without(self, name: str) -> IntakeRules:
        """A copy without a rule."""
        return replace(self, by_name={other: rule for other, rule in self.by_name.items() if other != name})

    def matching(self, event: Mapping[str, Any]) -> Sequence[IntakeRule]:
        """The rules whose pattern matches an event, by name.

        Raises:
            EventTooLarge: the comparison takes too many steps.
        """
        return [self.by_name[name] for name in sorted(self.by_name) if matches(self.by_name[name].pattern, event)]
