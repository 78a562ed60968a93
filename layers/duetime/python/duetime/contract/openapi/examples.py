"""Examples of requests and responses, recorded from the API and stored in this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime.contract.http import problems
from duetime.contract.openapi.rest_problems import rest_kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]
FILE = Path(__file__).with_name("examples.json")


def recorded() -> dict[str, Any]:
    """The recorded requests and responses of each operation, and a problem of each code."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def problem_examples(of: Mapping[str, Any]) -> dict[str, Schema]:
    """A problem of each code, for references from responses; unrecorded ones have only the values of their kind."""
    kinds = {kind.code: kind for kind in (*rest_kinds().values(), problems.INTERNAL)}
    found = {code: of["problems"].get(code) or _bare(kind) for code, kind in kinds.items()}
    return {code: {"summary": problem["title"], "value": problem} for code, problem in sorted(found.items())}


def _bare(kind: problems.Kind) -> problems.Problem:
    return problems.Problem(
        type=f"urn:duetime:problem:{kind.code}",
        title=kind.title,
        status=kind.status.value,
        detail=kind.title,
        instance="urn:duetime:request:request",
        code=kind.code,
        errors=[],
    )


def add_examples(operation: Schema, examples: Mapping[str, Any]) -> None:
    """Adds examples to a described operation.

    Args:
        operation: its description in the document.
        examples: bodies of its `request` and `responses`, by media type and by status.
    """
    for media_type, body in examples.get("request", {}).items():
        operation["requestBody"]["content"][media_type]["example"] = body
    for status, body in examples.get("responses", {}).items():
        content = operation["responses"].get(status, {}).get("content", {})
        if "application/json" in content:
            content["application/json"]["example"] = body
