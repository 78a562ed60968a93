"""The log groups of a deployment's functions. This module requires botocore (the extra `aws`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDS_BOTOCORE = 'reading logs needs botocore: pip install "duetime-client[aws]"'


def log_groups(session: Any, stack: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - botocore has no types
    """The functions in the outputs of a CloudFormation stack, with their log groups."""
    for _, name, group in _functions(session, stack):
        yield name, group


def log_group_of(session: Any, stack: str, function: str) -> str | None:  # noqa: ANN401 - same
    """The log group of one of the functions, such as `worker`; `None` if the stack has no such function."""
    wanted = f"{function}FunctionName".lower()
    return next((group for output, _, group in _functions(session, stack) if output.lower().endswith(wanted)), None)


def _functions(session: Any, stack: str) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 - same
    response = session.create_client("cloudformation").describe_stacks(StackName=stack)
    functions = session.create_client("lambda")
    for output in response["Stacks"][0].get("Outputs", []):
        if output["OutputKey"].endswith("FunctionName"):
            name = output["OutputValue"]
            config = functions.get_function_configuration(FunctionName=name)
            yield output["OutputKey"], name, config.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{name}"
