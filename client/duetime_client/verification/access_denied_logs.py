"""What only AWS itself can tell of a deployment: what its functions were denied. Needs botocore, the extra `aws`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_client.verification.assertions import Finding, Verdict, unmeasured

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROMISE = "no function is denied what it calls"
_PATTERN = '?AccessDenied ?AccessDeniedException ?"is not authorized to perform"'
_MOST_PAGES = 20


def denied_grants(stack: str, since_ms: int) -> Finding:
    """What the logs of a stack's functions say was denied to them.

    Args:
        stack: its name; nothing leaves this out.
        since_ms: the logs before that are not read.
    """
    if not stack:
        return unmeasured(_PROMISE, "no stack was named (--stack), whose logs are read")
    try:
        # Imported here, because botocore is an extra and takes longer to import than all the rest.
        import botocore.session  # noqa: PLC0415 - see the line above
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - same
    except ModuleNotFoundError:
        return unmeasured(_PROMISE, 'reading logs needs botocore: pip install "duetime-client[aws]"')
    session = botocore.session.get_session()
    try:
        groups = dict(_log_groups(session, stack))
        denied = [
            f"{name}: {_line(event)}" for name, group in groups.items() for event in _denials(session, group, since_ms)
        ]
    except (BotoCoreError, ClientError) as error:
        return unmeasured(_PROMISE, f"the logs cannot be read: {error}")
    if not groups:
        return unmeasured(_PROMISE, f"the stack {stack} names no functions")
    shown = f": {denied[0]}" if denied else ""
    figure = f"{len(denied)} denials in the logs of {len(groups)} functions{shown}"
    values = {"denied": sorted(set(denied)), "functions": sorted(groups)}
    return Finding(_PROMISE, Verdict.BROKEN if denied else Verdict.KEPT, figure, "none", values)


def _log_groups(session: Any, stack: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - botocore has no types
    """The functions that a stack's outputs name, and where each logs."""
    answer = session.create_client("cloudformation").describe_stacks(StackName=stack)
    functions = session.create_client("lambda")
    for output in answer["Stacks"][0].get("Outputs", []):
        if output["OutputKey"].endswith("FunctionName"):
            name = output["OutputValue"]
            config = functions.get_function_configuration(FunctionName=name)
            yield name, config.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{name}"


def _denials(session: Any, group: str, since_ms: int) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - same
    logs = session.create_client("logs")
    token: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        try:
            page = logs.filter_log_events(logGroupName=group, startTime=since_ms, filterPattern=_PATTERN, **token)
        except logs.exceptions.ResourceNotFoundException:
            return  # nothing was ever logged there
        yield from page.get("events", [])
        if "nextToken" not in page:
            return
        token = {"nextToken": page["nextToken"]}


def _line(event: dict[str, Any]) -> str:
    return str(event.get("message", ""))[:300].strip()
