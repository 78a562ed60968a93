"""Prints the report of a fuzzer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.hostile.fuzz import Fuzzer

SHOWN = 20


def told(fuzzer: Fuzzer) -> int:
    """Print the results of a fuzzer, and return 1 if a promise was broken."""
    print(f"{sum(fuzzer.answers.values())} requests, {len(fuzzer.broken)} not answered as promised")  # noqa: T201 - its report
    print("by status:", ", ".join(f"{status}: {count}" for status, count in sorted(fuzzer.answers.items())))  # noqa: T201 - same
    print("by code:", ", ".join(f"{code}: {count}" for code, count in fuzzer.codes.most_common()))  # noqa: T201 - same
    print("by operation:", ", ".join(f"{name}: {count}" for name, count in fuzzer.hit.most_common()))  # noqa: T201 - same
    for wrong, number in Counter(wrong for wrong, _ in fuzzer.broken).most_common(SHOWN):
        request = next(request for reason, request in fuzzer.broken if reason == wrong)
        print(f"{number} x {wrong}: {request!r}"[:1_000])  # noqa: T201 - same
    return 1 if fuzzer.broken else 0
