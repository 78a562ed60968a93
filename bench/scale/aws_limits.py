"""AWS limits that matter at large scale, each with its source; quotas can be raised where noted."""

from __future__ import annotations

from typing import Final

PARTITION_WRITES: Final = 1_000
"""Hard limit on write units a second per partition (Source: DynamoDB Developer Guide, "Understanding DynamoDB warm
throughput in different scenarios")."""
NEW_TABLE_WRITES: Final = 4_000
"""Write units a second that a new on-demand table accepts immediately (Source: AWS re:Post Knowledge Center, "My
on-demand DynamoDB table has throttling")."""
TABLE_DOUBLES_IN: Final = 30 * 60.0
"""Seconds over which traffic can grow to double its previous peak without throttling (the same source)."""
TABLE_QUOTA: Final = 40_000
"""Write units a second of a table, by default; the quota can be raised (the same source)."""
MAPPING_START: Final = 5
"""Initial concurrent batches of an event source mapping (Source: AWS Lambda Developer Guide, "Configuring scaling
behavior for SQS event source mappings")."""
MAPPING_GROWTH: Final = 300 / 60
"""Growth of a mapping's concurrent batches per second while the queue has messages (the same source)."""
MAPPING_MOST: Final = 1_250
"""Maximum concurrent batches of a mapping (the same source)."""
PROVISIONED_GROWTH: Final = 1_000 / 60
"""Growth per second in provisioned mode, which is about three times as fast, 1 000 a minute (the same source)."""
PROVISIONED_MOST: Final = 20_000
"""Maximum concurrent batches in provisioned mode, which are sixteen times as many (the same source)."""
FUNCTION_GROWTH: Final = 1_000 / 10
"""Execution environments that a function gains each second (Source: AWS Lambda Developer Guide, "Lambda scaling
behavior")."""
ACCOUNT_QUOTA: Final = 1_000
"""Concurrent executions of an account, by default; the quota can be raised (Source: AWS Lambda quotas)."""
IN_FLIGHT: Final = 120_000
"""Maximum messages in flight of a queue (Source: Amazon SQS quotas)."""
TRANSPORT_MEDIAN, TRANSPORT_P99 = 0.016, 0.105
"""Delivery delay from a queue to a function, in seconds (Source: bitesizedserverless.com, "Serverless Messaging:
Latency
Compared")."""
