from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.task_options import Priority
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from tests.infra.synthesis import referred

if TYPE_CHECKING:
    from tests.infra.synthesis import Properties, Synthesis

DAY = 86_400


def work_queues(synthesis: Synthesis) -> dict[Priority, str]:
    """Return the logical id of each priority's queue, read from the worker's environment."""
    variables = synthesis.functions()["worker"]["Environment"]["Variables"]
    return {priority: referred(variables[QUEUE_VARIABLES[priority].value]) for priority in Priority}


def pulled_queues(synthesis: Synthesis) -> set[str]:
    """Return the logical ids of the queues for pulled types, which no function reads."""
    read = {id_ for function in synthesis.functions() for id_ in mappings(synthesis, function)}
    return set(synthesis.properties("AWS::SQS::Queue")) - read - intake_queues(synthesis) - {lost_changes(synthesis)}


def intake_queues(synthesis: Synthesis) -> set[str]:
    """Return the logical ids of the intake's queues, if there is an intake; see `test_intake.py`."""
    if "intake" not in synthesis.functions():
        return set()
    rejects = referred(synthesis.functions()["intake"]["Environment"]["Variables"][Variable.INTAKE_REJECTS.value])
    return {*mappings(synthesis, "intake"), rejects}


def mappings(synthesis: Synthesis, function: str) -> dict[str, Properties]:
    """Return a function's event source mappings by their queue's logical id, without the mapping for the stream."""
    return {
        referred(mapping["EventSourceArn"]): mapping
        for mapping in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(mapping["FunctionName"]) == function and "StartingPosition" not in mapping
    }


def lost_changes(synthesis: Synthesis) -> str:
    """Return the queue for records that the table's stream could not deliver."""
    (mapping,) = [
        each
        for each in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(each["FunctionName"]) == "broadcast"
    ]
    return referred(mapping["DestinationConfig"]["OnFailure"]["Destination"])


def test_every_work_queue_has_its_dead_letter_queue(every: Synthesis) -> None:
    """Undeliverable messages from a work queue go to the queue that the dead-letter function reads."""
    queues = every.properties("AWS::SQS::Queue")
    (dead_letters,) = mappings(every, "deadletter")
    pulled = pulled_queues(every)
    assert len(pulled) == len(every.environment.pulled_types)
    ids = set(work_queues(every).values()) | pulled
    assert len(ids) == len(Priority) + len(pulled)
    assert set(queues) == ids | {dead_letters, lost_changes(every)} | intake_queues(every)
    for id_ in ids:
        redrive = queues[id_]["RedrivePolicy"]
        assert (referred(redrive["deadLetterTargetArn"]), redrive["maxReceiveCount"]) == (dead_letters, 1000)


def test_dead_letters_are_kept_longer(every: Synthesis) -> None:
    """A dead letter keeps its message's age, so its queue keeps messages longer than any work queue."""
    queues = every.properties("AWS::SQS::Queue")
    (dead_letters,) = mappings(every, "deadletter")
    assert {queues[id_]["MessageRetentionPeriod"] for id_ in work_queues(every).values()} == {4 * DAY}
    assert queues[dead_letters]["MessageRetentionPeriod"] == 14 * DAY


def test_the_visibility_timeout_is_at_least_the_timeout_of_the_function(every: Synthesis) -> None:
    """A queue's visibility timeout is at least its function's timeout, because AWS refuses a shorter one."""
    queues, functions = every.properties("AWS::SQS::Queue"), every.functions()
    read = [(function, id_) for function in functions for id_ in mappings(every, function)]
    # No function reads the queue of abandoned changes.
    assert len(read) == len(queues) - 1 - len(every.environment.pulled_types) - bool(every.environment.intake_owner)
    for function, id_ in read:
        assert queues[id_]["VisibilityTimeout"] >= functions[function]["Timeout"]


def test_queues_are_encrypted_and_require_tls(every: Synthesis) -> None:
    """Every queue encrypts its messages and refuses unencrypted connections."""
    queues = every.properties("AWS::SQS::Queue")
    assert all(queue["SqsManagedSseEnabled"] for queue in queues.values())
    refusing = {
        referred(policy["Queues"][0])
        for policy in every.properties("AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    }
    assert refusing == set(queues)


def test_the_worker_receives_full_batches_with_partial_batch_responses(every: Synthesis) -> None:
    """Each priority has its own mapping and limit, with ten messages, no window, and partial batch responses."""
    of_worker = mappings(every, "worker")
    for priority, id_ in work_queues(every).items():
        mapping = of_worker[id_]
        assert mapping["BatchSize"] == 10
        assert mapping["MaximumBatchingWindowInSeconds"] == 0
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": every.environment.concurrency[priority]}


def test_dead_letters_have_partial_batch_responses(every: Synthesis) -> None:
    """A dead letter that cannot be processed returns to the queue alone, without the rest of its batch."""
    (mapping,) = mappings(every, "deadletter").values()
    assert (mapping["BatchSize"], mapping["FunctionResponseTypes"]) == (10, ["ReportBatchItemFailures"])
