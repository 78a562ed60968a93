"""The limits of AWS that decide at large scale, each with its source; quotas can be raised where it says so."""

from __future__ import annotations

from typing import Final

PARTITION_WRITES: Final = 1_000
"""Write units a second of one partition; never more (Source: DynamoDB Developer Guide, "Understanding DynamoDB warm
throughput in different scenarios")."""
NEW_TABLE_WRITES: Final = 4_000
"""Write units a second that a new table on demand takes at once (Source: AWS re:Post Knowledge Center, "My on-demand
DynamoDB table has throttling")."""
TABLE_DOUBLES_IN: Final = 30 * 60.0
"""Seconds in which a table's traffic may double its previous peak without being throttled (the same source)."""
TABLE_QUOTA: Final = 40_000
"""Write units a second of a table, by default; can be raised (the same source)."""
MAPPING_START: Final = 5
"""Batches at once with which an event source mapping begins (Source: AWS Lambda Developer Guide, "Configuring scaling
behavior for SQS event source mappings")."""
MAPPING_GROWTH: Final = 300 / 60
"""How many more it takes at once, each second, while there are messages (the same source)."""
MAPPING_MOST: Final = 1_250
"""Batches at once, at most (the same source)."""
PROVISIONED_GROWTH: Final = 1_000 / 60
"""The growth of a mapping in provisioned mode: three times as fast, of 300 a minute as a round thousand (the same
source)."""
PROVISIONED_MOST: Final = 20_000
"""Batches at once of such a mapping: sixteen times as many (the same source)."""
FUNCTION_GROWTH: Final = 1_000 / 10
"""Execution environments that a function gains each second (Source: AWS Lambda Developer Guide, "Lambda scaling
behavior")."""
ACCOUNT_QUOTA: Final = 1_000
"""Concurrent executions of an account, by default; can be raised (Source: AWS Lambda quotas)."""
IN_FLIGHT: Final = 120_000
"""Messages of a queue that are received and not deleted (Source: Amazon SQS quotas)."""
TRANSPORT_MEDIAN, TRANSPORT_P99 = 0.016, 0.105
"""Seconds from a queue to a function (Source: bitesizedserverless.com, "Serverless Messaging: Latency Compared")."""
