from __future__ import annotations

import json
import re
from typing import Any

from duetime.adapters.runtime.process import SystemClock
from duetime.adapters.targets.signing import Signer
from duetime.domain.times import MINUTE
from tests.adapters.targets.receiver import secret_for
from tests.clocks import StandingClock
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "how-to" / "verify-a-signed-call.md"
SECRET, OTHER = "c2VjcmV0" * 8, "b3RoZXIh" * 8
ANNS = secret_for("ann", SECRET)
BODY = json.dumps({"task_id": "01M7YXRMFX00364F3R8C6BAZYP"}).encode()


def example() -> dict[str, Any]:
    """The page's Python, run."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own page
    return names


def test_the_receivers_example_takes_our_calls_and_no_others() -> None:
    """By either live secret, unchanged and fresh: what the page shows accepts that, and answers 401 to all else."""
    answer, clock = example()["respond"], SystemClock()
    headers = dict(Signer(lambda: [OTHER, SECRET], clock).headers("ann", "id-1", BODY))
    assert answer(ANNS, headers, BODY) == (200, "working on 01M7YXRMFX00364F3R8C6BAZYP")
    assert answer(secret_for("ann", OTHER), headers, BODY)[0] == 200
    assert answer(secret_for("bob", SECRET), headers, BODY)[0] == 401
    assert answer(ANNS, headers, BODY + b" ")[0] == 401
    assert answer(ANNS, headers | {"webhook-id": "id-2"}, BODY)[0] == 401
    assert answer(ANNS, {}, BODY)[0] == 401
    old = dict(Signer(lambda: [SECRET], StandingClock(clock.now() - 10 * MINUTE)).headers("ann", "id-1", BODY))
    assert answer(ANNS, old, BODY)[0] == 401
