"""The report of a siege."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.hostile.siege import Siege

SHOWN = 20


def told(siege: Siege) -> int:
    """Print what came of a siege; 1 if anything was not as promised."""
    print(f"{sum(siege.answers.values())} requests, {len(siege.broken)} not answered as promised")  # noqa: T201 - its report
    print("by status:", ", ".join(f"{status}: {count}" for status, count in sorted(siege.answers.items())))  # noqa: T201 - same
    print("by code:", ", ".join(f"{code}: {count}" for code, count in siege.codes.most_common()))  # noqa: T201 - same
    print("by operation:", ", ".join(f"{name}: {count}" for name, count in siege.hit.most_common()))  # noqa: T201 - same
    for wrong, number in Counter(wrong for wrong, _ in siege.broken).most_common(SHOWN):
        request = next(request for reason, request in siege.broken if reason == wrong)
        print(f"{number} x {wrong}: {request!r}"[:1_000])  # noqa: T201 - same
    return 1 if siege.broken else 0
