from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import schema
from tests import grants
from tests.infra.policies import policies
from tests.infra.synthesis import referred
from tests.infra.test_tick_and_alarms import alarm_named

if TYPE_CHECKING:
    from tests.infra.synthesis import Properties, Synthesis

HOUR = 3600


def mapping(synthesis: Synthesis) -> Properties:
    """Return the event source mapping from the table's stream to `broadcast`."""
    (found,) = [
        each
        for each in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(each["FunctionName"]) == "broadcast"
    ]
    return found


def test_the_stream_of_the_table_invokes_the_function(every: Synthesis) -> None:
    """The function gets both images of every change to a task or schedule, starting with the oldest change."""
    ((id_, table),) = every.properties("AWS::DynamoDB::Table").items()
    found = mapping(every)
    assert found["EventSourceArn"] == {"Fn::GetAtt": [id_, "StreamArn"]}
    assert found["StartingPosition"] == "TRIM_HORIZON"
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    patterns = [json.loads(each["Pattern"]) for each in found["FilterCriteria"]["Filters"]]
    assert patterns == list(schema.STREAM_FILTERS)


def test_an_outage_of_hours_loses_nothing(every: Synthesis) -> None:
    """A failing batch is retried and halved until its records are about to expire; then an alarm is raised."""
    found = mapping(every)
    assert found["MaximumRetryAttempts"] == -1
    assert 22 * HOUR < found["MaximumRecordAgeInSeconds"] < 24 * HOUR
    assert found["BisectBatchOnFunctionError"] is True
    lost = referred(found["DestinationConfig"]["OnFailure"]["Destination"])
    assert every.properties("AWS::SQS::Queue")[lost]["MessageRetentionPeriod"] == 14 * 24 * HOUR
    (dimension,) = alarm_named(every, "ChangesLost")["Dimensions"]
    assert referred(dimension["Value"]) == lost


def test_a_stream_batch_fits_into_an_invocation(every: Synthesis) -> None:
    """A full batch, with two images of one or two kilobytes per change, fits into Lambda's limit of six megabytes."""
    found = mapping(every)
    assert found["BatchSize"] * 6_000 <= 6_000_000
    assert 0 <= found["MaximumBatchingWindowInSeconds"] <= 300
    assert 1 <= found["ParallelizationFactor"] <= 10


def test_the_stream_function_can_read_the_stream_but_not_send_tasks(every: Synthesis) -> None:
    """The function may read the stream but may not send to any work queue."""
    of = policies(every)["broadcast"]
    assert all(of[action] == [grants.STREAM] for action in grants.STREAMING)
    assert of["sqs:SendMessage"] == [grants.queue("lost")]
