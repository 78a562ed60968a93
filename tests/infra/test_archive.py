from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

from duetime.adapters.dynamodb import schema
from duetime.contract.archive import COLUMNS
from duetime.contract.tasks.responses import TaskResponse
from duetime_cdk.errors import UnsafeEnvironment
from infra.environments import environment_named
from tests import grants
from tests.infra.policies import policies
from tests.infra.synthesis import Synthesis, referred
from tests.infra.test_tick_and_alarms import alarm_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from duetime_cdk.layers.build import Layers
    from tests.infra.synthesis import Properties

HOUR = 3600
OF_THE_LINE = {"owner", "attempts", "events", "events_dropped", "archive_format"}
"""Fields that a line of the archive has in addition to the API's fields of a task."""
FORMAT_1 = {
    "id": "text",
    "owner": "text",
    "type": "text",
    "state": "text",
    "name": "text",
    "tags": "json",
    "priority": "text",
    "due_at": "instant",
    "next_at": "instant",
    "created_at": "instant",
    "started_at": "instant",
    "finished_at": "instant",
    "lateness_ms": "integer",
    "attempt": "integer",
    "error": "json",
    "payload": "json",
    "result": "json",
    "content_expired": "json",
    "progress": "json",
    "target": "json",
    "retry": "json",
    "timeout_seconds": "integer",
    "notify_within_seconds": "integer",
    "rollback_on_failure": "boolean",
    "lock": "json",
    "callback_url": "text",
    "notify_on": "json",
    "schedule": "json",
    "topology": "json",
    "lease": "json",
    "awaiting_notification": "boolean",
    "requested_action": "text",
    "waiting_for": "json",
    "traceparent": "text",
    "fence": "integer",
    "version": "integer",
    "attempts": "json",
    "events": "json",
    "events_dropped": "integer",
    "archive_format": "integer",
}
"""The columns of the first version of the archive."""


@pytest.fixture
def prod(synthesis_of: Callable[[str], Synthesis]) -> Synthesis:
    """Return an environment with an archive."""
    return synthesis_of("prod")


def bucket_of(synthesis: Synthesis) -> tuple[str, Properties]:
    """Return the archive's bucket."""
    (found,) = [each for each in synthesis.properties("AWS::S3::Bucket").items() if each[0].startswith("Archive")]
    return found


def mapping_of(synthesis: Synthesis) -> Properties:
    """Return the event source mapping from the table's stream to `archive`."""
    (found,) = [
        each
        for each in synthesis.properties("AWS::Lambda::EventSourceMapping").values()
        if synthesis.function_named(each["FunctionName"]) == "archive"
    ]
    return found


def test_an_archive_exists_only_if_the_settings_have_its_retention(every: Synthesis) -> None:
    """`staging` and `prod` have an archive; elsewhere no part of it is deployed, and the API has no setting for it."""
    has_one = every.environment.name in {"staging", "prod"}
    assert bool(every.environment.archive_days) is has_one
    for type_ in ("AWS::Glue::Table", "AWS::Glue::Database", "AWS::Athena::WorkGroup", "AWS::Athena::NamedQuery"):
        assert len(every.of_type(type_)) == has_one
    assert ("archive" in every.functions()) is has_one
    told = every.functions()["api"]["Environment"]["Variables"]["DUETIME_ARCHIVE_BUCKET"]
    assert bool(told) is has_one
    outputs = every.template["Outputs"]
    assert ("ArchiveBucketName" in outputs) is has_one


def test_only_tasks_that_ttl_removes_are_archived(prod: Synthesis) -> None:
    """Lambda invokes the function only for records that TTL removes, in large batches, starting with the oldest."""
    from duetime_cdk.archive import BATCH_SECONDS, BATCH_SIZE

    found = mapping_of(prod)
    ((id_, _),) = prod.properties("AWS::DynamoDB::Table").items()
    assert found["EventSourceArn"] == {"Fn::GetAtt": [id_, "StreamArn"]}
    assert found["StartingPosition"] == "TRIM_HORIZON"
    (pattern,) = [json.loads(each["Pattern"]) for each in found["FilterCriteria"]["Filters"]]
    assert pattern == schema.REMOVED_TASKS_FILTER
    assert (found["BatchSize"], found["MaximumBatchingWindowInSeconds"]) == (BATCH_SIZE, BATCH_SECONDS) == (1000, 300)


def test_an_outage_of_a_day_loses_nothing(prod: Synthesis) -> None:
    """A failing batch is retried until its records are about to expire; then Lambda writes the batch to the bucket."""
    found = mapping_of(prod)
    assert found["MaximumRetryAttempts"] == -1
    assert 22 * HOUR < found["MaximumRecordAgeInSeconds"] < 24 * HOUR
    bucket, _ = bucket_of(prod)
    assert referred(found["DestinationConfig"]["OnFailure"]["Destination"]) == bucket
    alarm = alarm_named(prod, "ArchiveBehind")
    assert (alarm["MetricName"], alarm["Threshold"]) == ("IteratorAge", HOUR * 1000)
    (dimension,) = alarm["Dimensions"]
    assert prod.function_named(dimension["Value"]) == "archive"


def test_the_archive_function_can_write_only_the_archive(prod: Synthesis) -> None:
    """The function may write the archive's objects and read the table, but may not change the table or payloads."""
    of = policies(prod)["archive"]
    objects = [f"{grants.ARCHIVE}/{each}" for each in ("archive/*", "aws/lambda/*", "unreadable/*")]
    assert of == {
        **{action: [grants.STREAM] for action in grants.STREAMING},
        "dynamodb:GetItem": [grants.TABLE],
        "dynamodb:Query": [grants.TABLE],
        "s3:ListBucket": [grants.ARCHIVE],
        "s3:PutObject": objects,
        "s3:PutObjectTagging": objects[:1],
    }
    of_others = {name: actions for name, actions in policies(prod).items() if name not in {"archive", "bulk"}}
    assert grants.ARCHIVE not in json.dumps(of_others)


def test_purges_can_rewrite_only_the_tasks_in_the_archive(prod: Synthesis) -> None:
    """The function for bulk operations can access neither unreadable records nor query results."""
    of = {
        action: {each for each in resources if each.startswith(grants.ARCHIVE)}
        for action, resources in policies(prod)["bulk"].items()
    }
    tasks = {f"{grants.ARCHIVE}/archive/*"}
    assert {action: resources for action, resources in of.items() if resources} == {
        "s3:ListBucket": {grants.ARCHIVE},
        **dict.fromkeys(("s3:GetObject", "s3:PutObject", "s3:PutObjectTagging", "s3:DeleteObject"), tasks),
    }


def test_archived_objects_move_to_colder_storage_and_are_removed(prod: Synthesis) -> None:
    """Objects move to colder storage and are removed when their retention ends; incomplete uploads are deleted."""
    _, bucket = bucket_of(prod)
    halves, results, tasks, unreadable, given_up = bucket["LifecycleConfiguration"]["Rules"]
    assert halves["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert (results["Prefix"], results["ExpirationInDays"]) == ("query-results/", 7)
    days = prod.environment.archive_days
    assert [each["Prefix"] for each in (tasks, unreadable, given_up)] == ["archive/", "unreadable/", "aws/lambda/"]
    assert {each["ExpirationInDays"] for each in (tasks, unreadable, given_up)} == {days}
    moves = [(each["StorageClass"], each["TransitionInDays"]) for each in tasks["Transitions"]]
    assert moves == [("STANDARD_IA", 30), ("GLACIER_IR", 120)]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]


def test_a_short_archive_moves_no_objects(synthesis_of: Callable[[str], Synthesis]) -> None:
    """Objects that would be removed soon after a move to cheaper storage are not moved, because moves have a cost."""
    _, bucket = bucket_of(synthesis_of("staging"))
    assert not any("Transitions" in rule for rule in bucket["LifecycleConfiguration"]["Rules"])


def test_athena_has_every_field_of_an_archive_line(prod: Synthesis) -> None:
    """The columns are the API's task fields and an archive line's other fields, with the same names."""
    (table,) = prod.properties("AWS::Glue::Table").values()
    columns = [each["Name"] for each in table["TableInput"]["StorageDescriptor"]["Columns"]]
    assert columns == list(COLUMNS)
    assert set(columns) == get_type_hints(TaskResponse).keys() | OF_THE_LINE


def test_no_column_is_removed_or_changes_its_type() -> None:
    """No column is removed or changes its type, because queries must work with both old and new objects."""
    assert COLUMNS.items() >= FORMAT_1.items()


def test_athena_computes_partitions_from_the_days_in_the_keys(prod: Synthesis) -> None:
    """Partitions are computed from the day in the key.

    No crawler is needed, and a query reads only the days it asks for.
    """
    (table,) = prod.properties("AWS::Glue::Table").values()
    bucket, _ = bucket_of(prod)
    found = table["TableInput"]
    parameters: dict[str, Any] = found["Parameters"]
    assert [each["Name"] for each in found["PartitionKeys"]] == ["day"]
    assert parameters["projection.enabled"] == "true"
    assert (parameters["projection.day.type"], parameters["projection.day.format"]) == ("date", "yyyy-MM-dd")
    template = parameters["storage.location.template"]["Fn::Join"][1]
    assert template == ["s3://", {"Ref": bucket}, "/archive/day=${day}"]


def test_an_athena_query_is_limited_in_cost_and_output_location(prod: Synthesis) -> None:
    """For every caller, the workgroup stops queries that read too much, and stores encrypted results in the bucket."""
    (workgroup,) = prod.properties("AWS::Athena::WorkGroup").values()
    found = workgroup["WorkGroupConfiguration"]
    assert found["EnforceWorkGroupConfiguration"] is True
    assert found["BytesScannedCutoffPerQuery"] == 100_000_000_000
    assert found["ResultConfiguration"]["EncryptionConfiguration"] == {"EncryptionOption": "SSE_S3"}
    bucket, _ = bucket_of(prod)
    location = found["ResultConfiguration"]["OutputLocation"]["Fn::Join"][1]
    assert location == ["s3://", {"Ref": bucket}, "/query-results/"]


@pytest.mark.parametrize("days", [-1, 3_654])
def test_an_archive_with_an_invalid_retention_is_rejected(days: int) -> None:
    """An archive, for all types or by type, is kept for up to ten years; other values are rejected."""
    with pytest.raises(UnsafeEnvironment, match="archive"):
        replace(environment_named("dev"), archive_days=days)
    with pytest.raises(UnsafeEnvironment, match="archive"):
        replace(environment_named("dev"), archive_days_by_type={"ping": days})


def test_objects_of_types_with_shorter_retention_are_removed_by_their_tag(layers: Layers, tmp_path: Path) -> None:
    """The bucket's rules remove the objects of each retention class in time."""
    by_type = {"audit.*": 400, "ping": 7, "report": 0}
    environment = replace(environment_named("dev"), archive_days=30, archive_days_by_type=by_type)
    _, bucket = bucket_of(made := Synthesis(environment, layers, tmp_path))
    rules = [each for each in bucket["LifecycleConfiguration"]["Rules"] if each.get("Prefix") == "archive/"]
    found = [(each.get("TagFilters"), each["ExpirationInDays"]) for each in rules]
    assert found == [
        (None, 400),
        ([{"Key": "kept-days", "Value": "7"}], 7),
        ([{"Key": "kept-days", "Value": "30"}], 30),
    ]
    variables = made.functions()["archive"]["Environment"]["Variables"]
    assert (variables["DUETIME_ARCHIVE_DAYS"], json.loads(variables["DUETIME_ARCHIVE_DAYS_BY_TYPE"])) == ("30", by_type)


def test_archives_of_two_environments_have_different_names(synthesis_of: Callable[[str], Synthesis]) -> None:
    """Databases and workgroups are named after their environments."""
    names = []
    for synthesis in (synthesis_of("staging"), synthesis_of("prod")):
        (database,) = synthesis.properties("AWS::Glue::Database").values()
        (workgroup,) = synthesis.properties("AWS::Athena::WorkGroup").values()
        names.append((database["DatabaseInput"]["Name"], workgroup["Name"]))
    assert names == [("duetime_staging", "duetime-staging"), ("duetime_prod", "duetime-prod")]
