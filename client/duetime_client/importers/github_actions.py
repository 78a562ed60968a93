"""Imports scheduled GitHub Actions workflows.

Source: GitHub Docs, "Events that trigger workflows: schedule" and "Workflow syntax": cron expressions of five fields,
    in UTC unless `timezone` is given; a workflow with several expressions runs for each expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_client.importers.draft import shown
from duetime_client.importers.yaml_source import Fields, readable_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.importers.draft import Draft, Item, Source

_STAYS = "stays with GitHub: it is not a schedule"
_KNOWN = {
    "jobs": "steps and actions run on GitHub's runners: let the handler start the workflow, or do its work",
    "permissions": "the handler's token decides",
    "env": "set the environment of the handlers",
    "defaults": "the steps do not run in duetime",
    "run-name": "give the task a `name`",
}


def import_github_actions(draft: Draft, sources: Sequence[Source]) -> None:
    """Import the cron expressions under `on.schedule` in all workflows."""
    for source, documents in readable_documents(draft, sources):
        workflow = documents[0] if documents else None
        triggers = workflow.get("on") if isinstance(workflow, Fields) else None
        if not isinstance(workflow, Fields) or not isinstance(triggers, Fields) or "schedule" not in triggers:
            draft.unreadable(source, "has no on.schedule")
            continue
        _import_workflow(draft, source, workflow, triggers)


def _import_workflow(draft: Draft, source: Source, workflow: Fields, triggers: Fields) -> None:
    file = source.name.replace("\\", "/").rpartition("/")[2]
    name = file.removesuffix(".yml").removesuffix(".yaml")
    entries = triggers["schedule"] if isinstance(triggers["schedule"], list) else [triggers["schedule"]]
    first: Item | None = None
    for entry in entries:
        line = entry.line if isinstance(entry, Fields) else triggers.lines.get("schedule", 0)
        item = draft.item(source, line, name)
        if not isinstance(entry, Fields) or not isinstance(entry.get("cron"), str):
            item.omit(f"{shown(entry)} has no cron", "on.schedule")
            continue
        item.fields["cron"] = entry["cron"].strip()
        if _has_two_days(item.fields["cron"]):
            item.fields["dialect"] = "kubernetes"
        if isinstance(entry.get("timezone"), str):
            # If the clock skips a run's time, GitHub runs the workflow right after the skipped hour.
            item.fields |= {"timezone": entry["timezone"], "dst_gap": "shift_forward"}
        item.unread(entry, frozenset({"cron", "timezone"}), "on.schedule.", {})
        _settle(item, workflow, file)
        draft.add(item)
        first = first or item
    if first is not None:
        read = frozenset({"on", "name", "concurrency"})
        first.unread(workflow, read, "", {**_KNOWN, "jobs": _jobs(workflow.get("jobs"))})
        first.unread(triggers, frozenset({"schedule"}), "on.", dict.fromkeys(triggers, _STAYS))


def _settle(item: Item, workflow: Fields, file: str) -> None:
    concurrency = workflow.get("concurrency")
    group = concurrency if isinstance(concurrency, str) else None
    cancels = False
    if isinstance(concurrency, Fields):
        group, cancels = concurrency.get("group"), concurrency.get("cancel-in-progress") is True
    item.fields["overlap"] = "allow_all" if group is None else "cancel_other" if cancels else "buffer_one"
    if group is not None:
        line = workflow.lines.get("concurrency", 0)
        item.differs(
            "concurrency",
            f"applies only to this schedule's runs; the group {shown(group)} can include other runs",
            line,
        )
    item.comment(workflow.get("name"), "name")
    payload = {"workflow": file, "schedule": item.fields["cron"]}
    # GitHub does not retry scheduled workflow runs.
    item.fields["task"] = {
        "type": item.placeholder("its jobs do not run in duetime"),
        "payload": payload,
        "retry": {"max_attempts": 1},
    }


def _jobs(jobs: object) -> str:
    named = ", ".join(map(str, jobs)) if isinstance(jobs, dict) else "jobs"
    return f"{shown(named)}: {_KNOWN['jobs']}"


def _has_two_days(cron: str) -> bool:
    """Whether an expression names a day of the month and a weekday; GitHub runs on days that match either field."""
    fields = cron.split()
    return len(fields) == len("mhdMw") and fields[2] != "*" and fields[4] != "*"
