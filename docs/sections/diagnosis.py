"""Generates the sections about the checks that `duetime doctor` runs, and about the IAM policy that allows them."""

from __future__ import annotations

import json
from itertools import groupby

from docs.sections.markdown import code, table
from duetime_client.doctor.checks import CHECKS


def check_table() -> str:
    """Return a table of the checks with the read-only IAM actions that each check needs."""
    stack = {action for action in CHECKS[-1].asks if action.startswith("cloudformation:")}
    rows = []
    for check in CHECKS:
        own = [each for each in check.asks if each not in stack or len(check.asks) == 1]
        source = "the time in responses" if check.name == "clock" else "the API"
        rows.append((check.name, ", ".join(map(code, own)) or source))
    return table(("check", "asks"), rows)


def policy() -> str:
    """Return a JSON code block with an IAM policy that allows every check."""
    actions = sorted({action for check in CHECKS for action in check.asks})
    lines = [", ".join(json.dumps(each) for each in some) for _, some in groupby(actions, _service)]
    listed = ",\n    ".join(lines)
    statement = f'{{"Effect": "Allow", "Resource": "*", "Action": [\n    {listed}\n  ]}}'
    document = f'{{"Version": "2012-10-17", "Statement": [\n  {statement}\n]}}'
    return f"<!-- not run: a policy of IAM -->\n```json\n{document}\n```"


def _service(action: str) -> str:
    return action.partition(":")[0]
