"""Creates Athena's resources for the archive: a table, a workgroup and a sample query."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from aws_cdk import Aws, Stack
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from constructs import Construct

from duetime.contract.archive import COLUMNS, Kind
from duetime_cdk.archive import RESULTS_PREFIX

if TYPE_CHECKING:
    from aws_cdk import aws_s3 as s3

TABLE = "tasks"
_FIRST_DAY = "2026-01-01"
_MOST_SCANNED = 100 * 1_000_000_000
"""Maximum number of bytes that one query may scan, which costs half a dollar."""
_TYPES = {Kind.INTEGER: "bigint", Kind.BOOLEAN: "boolean"}
"""Glue types of columns; columns not listed here are strings that contain text or JSON."""
_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
_SERDE = "org.openx.data.jsonserde.JsonSerDe"


class ArchiveCatalog(Construct):
    """A Glue table with projected daily partitions, so that no crawler is needed.

    Source: Athena User Guide, "Set up partition projection".
    """

    def __init__(self, scope: Construct, id_: str, *, bucket: s3.Bucket) -> None:
        super().__init__(scope, id_)
        stack = Stack.of(self).stack_name
        name = _database_of(stack)
        self.database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(name=name, description="duetime: ended tasks"),
        )
        self.table = self._table(name, bucket)
        self.workgroup = self._workgroup(stack, bucket)
        query = athena.CfnNamedQuery(
            self,
            "Failures",
            database=name,
            name=self.workgroup.name,
            description="Failures by type: finally failed tasks of a month by type and error, each task once",
            query_string=_QUERY,
            work_group=self.workgroup.name,
        )
        query.add_resource_dependency(self.workgroup)

    def _table(self, database: str, bucket: s3.Bucket) -> glue.CfnTable:
        location = f"s3://{bucket.bucket_name}/archive"
        columns = [
            glue.CfnTable.ColumnProperty(name=name, type=_TYPES.get(kind, "string")) for name, kind in COLUMNS.items()
        ]
        serde = glue.CfnTable.SerdeInfoProperty(
            serialization_library=_SERDE, parameters={"ignore.malformed.json": "true"}
        )
        table = glue.CfnTable(
            self,
            "Table",
            catalog_id=Aws.ACCOUNT_ID,
            database_name=database,
            table_input=glue.CfnTable.TableInputProperty(
                name=TABLE,
                description="Ended tasks, by the day of their end; a task can appear twice (see the saved query)",
                table_type="EXTERNAL_TABLE",
                partition_keys=[glue.CfnTable.ColumnProperty(name="day", type="string")],
                parameters={
                    "classification": "json",
                    "projection.enabled": "true",
                    "projection.day.type": "date",
                    "projection.day.format": "yyyy-MM-dd",
                    "projection.day.range": f"{_FIRST_DAY},NOW",
                    "storage.location.template": f"{location}/day=${{day}}",
                },
                storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                    columns=columns,
                    location=f"{location}/",
                    compressed=True,
                    serde_info=serde,
                    input_format=_INPUT,
                    output_format=_OUTPUT,
                ),
            ),
        )
        table.add_resource_dependency(self.database)
        return table

    def _workgroup(self, name: str, bucket: s3.Bucket) -> athena.CfnWorkGroup:
        encryption = athena.CfnWorkGroup.EncryptionConfigurationProperty(encryption_option="SSE_S3")
        results = athena.CfnWorkGroup.ResultConfigurationProperty(
            output_location=f"s3://{bucket.bucket_name}/{RESULTS_PREFIX}", encryption_configuration=encryption
        )
        return athena.CfnWorkGroup(
            self,
            "Workgroup",
            name=name,
            description="duetime: queries of the archive",
            recursive_delete_option=True,
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                bytes_scanned_cutoff_per_query=_MOST_SCANNED,
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=False,
                result_configuration=results,
            ),
        )


def _database_of(stack: str) -> str:
    """The name of a stack's database; capitals add a digest, because lower-cased names of stacks may be equal."""
    name = stack.lower().replace("-", "_")
    return name if stack == stack.lower() else f"{name}_{sha256(stack.encode()).hexdigest()[:8]}"


_QUERY = """\
-- A batch that was archived twice is there twice: each task counts once.
WITH once AS (
  SELECT DISTINCT id, version, type, state, json_extract_scalar(error, '$.type') AS error_type
  FROM tasks
  WHERE day BETWEEN '2026-11-01' AND '2026-11-30'
)
SELECT type, error_type, count(*) AS tasks
FROM once
WHERE state = 'failed'
GROUP BY type, error_type
ORDER BY tasks DESC
"""
