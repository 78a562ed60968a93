"""What earlier answers about topologies, locks and switches say, in the words of API 1.0.

Frozen answers stay as they were written; only names and values that were renamed differ from today's.
"""

from __future__ import annotations

from typing import Any

_SWITCH = {"changed_at": "updated_at", "changed_by": "updated_by"}
_HOLDER = {"until": "expires_at"}


def in_present_words(path: str, answer: dict[str, Any]) -> dict[str, Any]:
    """An earlier answer to a request, as far as it was renamed."""
    match path.split("/")[2]:
        case "switches":
            return answer | {"switches": [_renamed(switch, _SWITCH) for switch in answer["switches"]]}
        case "locks":
            return answer | {"holders": [_renamed(holder, _HOLDER) for holder in answer["holders"]]}
        case _:
            return answer


def _renamed(known: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in known.items()}
