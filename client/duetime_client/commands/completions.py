"""Shell completion of values that are not fixed choices."""

from duetime_client.commands.contexts import LOCAL, contexts_file, read_contexts
from duetime_client.errors import ClientError

STATES = (
    *("blocked", "scheduled", "preparing", "running", "waiting", "paused"),
    *("succeeded", "failed", "rolling_back", "rolled_back", "cancelled"),
)
"""States of tasks, as suggestions only: a newer API may have other states."""


def states(incomplete: str) -> list[str]:
    """States of tasks."""
    return [state for state in STATES if state.startswith(incomplete)]


def context_names(incomplete: str) -> list[str]:
    """Names of contexts."""
    try:
        known = read_contexts(contexts_file()).by_name
    except ClientError:
        return []
    return [name for name in sorted({LOCAL, *known}) if name.startswith(incomplete)]
