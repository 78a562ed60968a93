"""Translates a domain `Write` to one UpdateItem; `tests/domain/write_semantics.py` defines its meaning.

Every name uses a placeholder (`#due_at`): DynamoDB reserves hundreds of words, and the engines used in tests do not all
reject them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.attribute_values import text
from duetime.adapters.dynamodb.field_codecs import TOPOLOGY
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, encoded, key_of
from duetime.domain.tasks.states import LEGAL, STARTABLE, TERMINAL, Move, State
from duetime.domain.tasks.task import RequestedAction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.adapters.dynamodb.attribute_values import Item, Value
    from duetime.domain.conditional_writes import Guard, Write


def update_of(write: Write, table: str) -> dict[str, Any]:
    """The arguments of the UpdateItem for a write."""
    expression = _Expression()
    condition = expression.condition(write)
    update = expression.update(write)
    return {
        "TableName": table,
        "Key": key_of(write.task_id),
        "ConditionExpression": condition,
        "UpdateExpression": update,
        "ExpressionAttributeNames": expression.names,
        "ExpressionAttributeValues": expression.values,
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


class ValueNotStorable(TypeError):
    """A write compares or adds a value that has no form in an item."""

    def __init__(self, label: str) -> None:
        super().__init__(f"{label} cannot be compared or added")


class _Expression:
    """Collects the placeholders of one request while its expressions are built."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: Item = {}

    def condition(self, write: Write) -> str:
        """The condition on the record."""
        guard = write.guard
        clauses = [
            f"attribute_exists({self._name(schema.PARTITION_KEY)})",
            # A repeat of an applied write must not be applied again.
            self._compare("nonce", "<>", "nonce", write.nonce),
            self._states(write),
        ]
        if TERMINAL & LEGAL[write.move].sources:
            # An erased task has ended.
            clauses.append(f"attribute_not_exists({self._field('erased')})")
        if guard.owner is not None:
            task, node = (write.task_id.owner_partition(guard.owner, is_node=is_node) for is_node in (False, True))
            owners = f"{self._value('owner', text(task))}, {self._value('node_owner', text(node))}"
            clauses.append(f"{self._name(schema.OWNER_KEY)} IN ({owners})")
        if guard.version is not None:
            clauses.append(self._compare("version", "=", "guard_version", guard.version))
        if guard.fence is not None:
            clauses.append(self._compare("fence", "=", "guard_fence", guard.fence))
        if guard.due_by is not None:
            clauses.append(self._compare("next_at", "<=", "due_by", guard.due_by))
        if guard.alone:
            clauses.append(f"attribute_not_exists({self._field('node_ref')})")
            clauses.append(f"attribute_not_exists({self._field('target')}.{self._name(TOPOLOGY)})")
        if guard.open:
            clauses.append(f"attribute_not_exists({self._field('finished_at')})")
        if guard.acknowledged:
            clauses.append(f"attribute_not_exists({self._field('unacknowledged')})")
        if guard.not_cancelled:
            other = self._compare("requested_action", "<>", "cancel", RequestedAction.CANCEL)
            clauses.append(f"(attribute_not_exists({self._field('requested_action')}) OR {other})")
        return " AND ".join(clauses)

    def _states(self, write: Write) -> str:
        """The states that the move may leave, each kind with the further conditions of the guard."""
        sources, ended = LEGAL[write.move].sources, write.guard.leased_until_before
        if ended is None:
            return self._at_generation(sources, write.guard)
        over = self._compare("lease_expires_at", "<=", "leased_until", ended)
        never = f"attribute_not_exists({self._field('lease_expires_at')})"
        kinds = []
        if held := sources - STARTABLE:
            kinds.append(self._state_in(held))
        if waiting := sources & STARTABLE:
            kinds.append(self._at_generation(waiting, write.guard))
        # AND binds tighter than OR; DynamoDB rejects redundant parentheses.
        states = f"({' OR '.join(kinds)})" if len(kinds) > 1 else kinds[0]
        return f"{states} AND ({never} OR {over})"

    def _at_generation(self, states: frozenset[State], guard: Guard) -> str:
        clauses = [self._state_in(states)]
        if guard.generation is not None:
            clauses.append(self._compare("generation", "=", "guard_turn", guard.generation))
        return " AND ".join(clauses)

    def update(self, write: Write) -> str:
        """The changes: the later of `sets_once`, `sets` and `adds` wins, as in `applied`."""
        sets, removes = self._fixed(write)
        for field, value in write.sets.items():
            if field in write.adds:
                continue
            if (stored := encoded(field, value)) is None:
                removes.append(self._field(field))
            else:
                sets.append(f"{self._field(field)} = {self._value(field, stored)}")
        for field, value in write.sets_once.items():
            if field in write.adds or field in write.sets or (stored := encoded(field, value)) is None:
                continue
            name = self._field(field)
            sets.append(f"{name} = if_not_exists({name}, {self._value(field, stored)})")
        adds = [self._added(field, count) for field, count in ({"version": 1} | dict(write.adds)).items()]
        removed = f" REMOVE {', '.join(removes)}" if removes else ""
        return f"SET {', '.join(sets)} ADD {', '.join(adds)}{removed}"

    def _fixed(self, write: Write) -> tuple[list[str], list[str]]:
        """Changes in every write: the nonce, and with the state the entry in the list of failed tasks."""
        rule = LEGAL[write.move]
        sets, removes = [f"{self._field('nonce')} = :nonce"], []
        if rule.to is not None:
            sets.append(f"{self._field('state')} = {self._value('state', encoded('state', rule.to))}")
            if rule.to is State.FAILED:
                sets.append(f"{self._name(schema.FAILED_KEY)} = {self._name(schema.OWNER_KEY)}")
            elif State.FAILED in rule.sources:
                removes.append(self._name(schema.FAILED_KEY))
        elif write.move is Move.ERASE:
            removes.append(self._name(schema.FAILED_KEY))
        return sets, removes

    def _added(self, field: str, count: int) -> str:
        return f"{self._field(field)} {self._value(f'add_{field}', encoded(field, count))}"

    def _state_in(self, states: Iterable[State]) -> str:
        name = self._field("state")
        allowed = [self._value(f"from_{state.value}", encoded("state", state)) for state in sorted(states)]
        return f"{name} IN ({', '.join(allowed)})"

    def _compare(self, field: str, operator: str, label: str, value: object) -> str:
        return f"{self._field(field)} {operator} {self._value(label, encoded(field, value))}"

    def _field(self, field: str) -> str:
        self.names[f"#{field}"] = ATTRIBUTES[field].name
        return f"#{field}"

    def _name(self, attribute: str) -> str:
        self.names[f"#key_{attribute}"] = attribute
        return f"#key_{attribute}"

    def _value(self, label: str, value: Value | None) -> str:
        if value is None:
            raise ValueNotStorable(label)
        self.values[f":{label}"] = value
        return f":{label}"
