"""Prices that the calculations assume: those of the reference page "What a task costs", dated there."""

from __future__ import annotations

from typing import Final

MILLION: Final = 1_000_000
WRITE_UNIT: Final = 0.625 / MILLION
READ_UNIT: Final = 0.125 / MILLION
SQS_REQUEST: Final = 0.40 / MILLION
INVOCATION: Final = 0.20 / MILLION
"""Dollars each: DynamoDB on demand, an SQS standard queue, AWS Lambda."""
