"""Defects in idempotency keys and unique keys: their expiry, and the tasks that hold them."""

from __future__ import annotations

from tests.simulation.mutations.mutant import Mutant

MUTANTS = (
    Mutant(
        "the end of an earlier attempt lets a unique key expire although its task has taken the key again",
        "adapters/dynamodb/keys.py",
        'ConditionExpression="#i = :i AND #k <= :k"',
        'ConditionExpression="#i = :i AND (#k <= :k OR #k > :k)"',
        pairs="^unique-ending (retry worker-failing|worker-failing retry)$",
    ),
    Mutant(
        "a task that takes its unique key again does not record the fence from which the key may expire",
        "services/unique_keys.py",
        "since_fence=task.fence + 1",
        "since_fence=0",
        pairs="^unique-ending (retry worker-failing|worker-failing retry)$",
    ),
    Mutant(
        "the end of a task lets another task's unique key expire",
        "adapters/dynamodb/keys.py",
        'ConditionExpression="#i = :i AND #k <= :k"',
        'ConditionExpression="(#i = :i OR #i <> :i) AND #k <= :k"',
    ),
    Mutant(
        "the item of a unique key expires before the record of its task",
        "services/unique_keys.py",
        "expires_at = after_record(task.expires_at).at",
        "expires_at = 2 * task.created_at - task.expires_at",
    ),
    Mutant(
        "a unique key is taken although another task has taken it since it was read",
        "adapters/dynamodb/keys.py",
        '"attribute_not_exists(#j)" if taking.after is None else "#j = :after"',
        '"attribute_not_exists(#j)" if taking.after is None else "attribute_exists(#j)"',
        also=(("if taking.after is not None:", "if False:"),),
    ),
    Mutant(
        "an idempotency key is redirected although it now names another task",
        "adapters/dynamodb/keys.py",
        '"ConditionExpression": "#i = :i",\n        "ExpressionAttributeNames": {"#i": _TASK, "#u": _ON_CONFLICT},',
        '"ConditionExpression": "#i = :i OR #i <> :i",\n'
        '        "ExpressionAttributeNames": {"#i": _TASK, "#u": _ON_CONFLICT},',
        test="tests/adapters/test_key_store.py::test_a_key_is_redirected_once",
    ),
    Mutant(
        "an idempotency key that has expired is kept until TTL removes it",
        "adapters/dynamodb/keys.py",
        '"attribute_not_exists(#p) OR #expires_at <= :now"',
        '"attribute_not_exists(#p) OR (#expires_at <= :now AND #expires_at > :now)"',
        test="tests/adapters/test_key_store.py::test_an_expired_key_can_be_used_again",
    ),
    Mutant(
        "an idempotency key with a different body returns the task of the first body",
        "services/tasks/create.py",
        "        if known.body_hash != key.body_hash:\n            raise KeyReused\n        return known",
        "        return known",
    ),
)
