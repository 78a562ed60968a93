from __future__ import annotations

import json
import re
from typing import Any

import pytest

from duetime.adapters.runtime.process import SystemClock
from duetime.adapters.targets.signing import Signer
from duetime.domain.times import MINUTE
from duetime_common.signing_keys import SigningKey, SigningKeys
from tests.adapters.targets.receiver import public_key_for, secret_for
from tests.clocks import StandingClock
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "how-to" / "verify-a-signed-call.md"
SECRET, OTHER = "c2VjcmV0" * 8, "b3RoZXIh" * 8
ANNS = secret_for("ann", SECRET)
BOTH = SigningKeys((SigningKey(OTHER), SigningKey(SECRET)))
_FACTS = {"owner": "ann", "audience": "https://example.org/report", "task_id": "01M7YXRMFX00364F3R8C6BAZYP"}
BODY = json.dumps(_FACTS).encode()


def examples() -> list[dict[str, Any]]:
    """Run the page's Python code, which has one example with the client and one with the library."""
    found: list[dict[str, Any]] = []
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        found.append({})
        exec(code, found[-1])  # noqa: S102 - our own page
    return found


CLIENT, LIBRARY = examples()


def test_the_example_of_the_client_accepts_public_keys() -> None:
    """The client's example accepts a call with its owner's public key, but not with another owner's."""
    headers = dict(Signer(lambda: BOTH, SystemClock()).headers("ann", "id-1", BODY))
    assert CLIENT["respond"](public_key_for("ann", SECRET), headers, BODY)[0] == 200
    assert CLIENT["respond"](public_key_for("bob", SECRET), headers, BODY)[0] == 401


@pytest.mark.parametrize("example", [CLIENT, LIBRARY])
def test_the_example_of_a_receiver_accepts_only_valid_calls(example: dict[str, Any]) -> None:
    """The example accepts unchanged, recent calls signed with a live secret, and responds to other calls with 401."""
    answer, clock = example["respond"], SystemClock()
    headers = dict(Signer(lambda: BOTH, clock).headers("ann", "id-1", BODY))
    assert answer(ANNS, headers, BODY) == (200, "working on 01M7YXRMFX00364F3R8C6BAZYP")
    assert answer(secret_for("ann", OTHER), headers, BODY)[0] == 200
    assert answer(secret_for("bob", SECRET), headers, BODY)[0] == 401
    assert answer(ANNS, headers, BODY + b" ")[0] == 401
    assert answer(ANNS, headers | {"webhook-id": "id-2"}, BODY)[0] == 401
    assert answer(ANNS, {}, BODY)[0] == 401
    old = dict(
        Signer(lambda: SigningKeys.parse(SECRET), StandingClock(clock.now() - 10 * MINUTE)).headers("ann", "id-1", BODY)
    )
    assert answer(ANNS, old, BODY)[0] == 401
