"""Lists AWS limits that matter at large scale, with their sources and whether AWS can raise them."""

from __future__ import annotations

from typing import Final

PARTITION_WRITES: Final = 1_000
"""Maximum write units a second of a partition, which is a hard limit (Source: DynamoDB Developer Guide, "Understanding
DynamoDB warm throughput in different scenarios")."""
NEW_TABLE_WRITES: Final = 4_000
"""Write units a second that a new on-demand table accepts from the start (Source: AWS re:Post Knowledge Center, "My
on-demand DynamoDB table has throttling")."""
TABLE_DOUBLES_IN: Final = 30 * 60.0
"""Seconds over which traffic can grow to twice its previous peak without throttling (same source)."""
TABLE_QUOTA: Final = 40_000
"""Default quota for a table's write units a second, which can be raised (same source)."""
MAPPING_START: Final = 5
"""Number of concurrent batches with which an event source mapping starts (Source: AWS Lambda Developer Guide,
"Configuring scaling behavior for SQS event source mappings")."""
MAPPING_GROWTH: Final = 300 / 60
"""Number of concurrent batches that a mapping adds per second while the queue has messages (same source)."""
MAPPING_MOST: Final = 1_250
"""Maximum number of concurrent batches of a mapping (same source)."""
PROVISIONED_GROWTH: Final = 1_000 / 60
"""Number of concurrent batches that a mapping adds per second in provisioned mode, about three times as many as usual
(same source)."""
PROVISIONED_MOST: Final = 20_000
"""Maximum number of concurrent batches in provisioned mode, sixteen times as many as usual (same source)."""
FUNCTION_GROWTH: Final = 1_000 / 10
"""Execution environments that a function gains each second (Source: AWS Lambda Developer Guide, "Lambda scaling
behavior")."""
ACCOUNT_QUOTA: Final = 1_000
"""Default quota for an account's concurrent executions, which can be raised (Source: AWS Lambda quotas)."""
IN_FLIGHT: Final = 120_000
"""Maximum number of messages in flight in a queue (Source: Amazon SQS quotas)."""
TRANSPORT_MEDIAN, TRANSPORT_P99 = 0.016, 0.105
"""Median and 99th percentile of the delivery delay from a queue to a function, in seconds (Source:
bitesizedserverless.com, "Serverless Messaging: Latency Compared")."""
