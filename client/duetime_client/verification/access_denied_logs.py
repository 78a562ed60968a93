"""Finds access-denied errors in the logs of a deployment's functions. Requires botocore (the extra `aws`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_client.log_groups import NEEDS_BOTOCORE, log_groups
from duetime_client.plurals import counted
from duetime_client.verification.findings import Finding, Verdict, unmeasured

if TYPE_CHECKING:
    from collections.abc import Iterator

_GUARANTEE = "no function is denied a call"
DENIALS = '?AccessDenied ?AccessDeniedException ?"is not authorized to perform"'
"""CloudWatch Logs filter pattern for denied AWS calls."""
_MOST_PAGES = 20


def denied_grants(stack: str, since_ms: int) -> Finding:
    """Return a finding about access-denied errors in the logs of a stack's functions.

    Args:
        stack: name of the CloudFormation stack; empty to skip this check.
        since_ms: time of the first log event to read, in milliseconds since 1970.
    """
    if not stack:
        return unmeasured(_GUARANTEE, "needs the name of the stack (--stack)")
    try:
        # botocore is imported here because it is an extra, and takes longer to import than all other modules.
        import botocore.session  # noqa: PLC0415 - see the line above
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - same
    except ModuleNotFoundError:
        return unmeasured(_GUARANTEE, NEEDS_BOTOCORE)
    session = botocore.session.get_session()
    try:
        groups = dict(log_groups(session, stack))
        denied = [
            f"{name}: {_line(event)}" for name, group in groups.items() for event in _denials(session, group, since_ms)
        ]
    except (BotoCoreError, ClientError) as error:
        return unmeasured(_GUARANTEE, f"the logs cannot be read: {error}")
    if not groups:
        return unmeasured(_GUARANTEE, f"the stack {stack} names no functions")
    shown = f": {denied[0]}" if denied else ""
    figure = f"{counted(len(denied), 'denial')} in the logs of {counted(len(groups), 'function')}{shown}"
    values = {"denied": sorted(set(denied)), "functions": sorted(groups)}
    return Finding(_GUARANTEE, Verdict.FAILED if denied else Verdict.PASSED, figure, "none", values)


def _denials(session: Any, group: str, since_ms: int) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - same
    logs = session.create_client("logs")
    token: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        try:
            page = logs.filter_log_events(logGroupName=group, startTime=since_ms, filterPattern=DENIALS, **token)
        except logs.exceptions.ResourceNotFoundException:
            return  # nothing has been logged yet
        yield from page.get("events", [])
        if "nextToken" not in page:
            return
        token = {"nextToken": page["nextToken"]}


def _line(event: dict[str, Any]) -> str:
    return str(event.get("message", ""))[:300].strip()
