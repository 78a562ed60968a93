"""Generates sections of the pages of reference, migrations and security from the code: `python docs/generate.py`.

A page marks a section with `<!-- generated: NAME -->` and `<!-- end -->`; the text between is generated.
With `--check`, nothing is written, and outdated pages are listed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from docs.sections import api, celery, cron, diagnosis, events, limits, metrics, prices, roles, settings, states
from docs.site import llms
from duetime.contract.live_updates import asyncapi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REFERENCE = Path(__file__).resolve().parent / "reference"
MIGRATIONS = REFERENCE.parent / "migrations"
SECURITY = REFERENCE.parent / "security.md"
DIAGNOSIS = REFERENCE.parent / "how-to" / "diagnose-a-deployment.md"
README = REFERENCE.parents[1] / "README.md"
SECTION = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

SECTIONS: Mapping[str, Callable[[], str]] = {
    "states": states.state_table,
    "moves": states.move_table,
    "picture": states.picture,
    "changeable": states.changeable,
    "event-kinds": events.event_kinds,
    "event-fields": events.event_fields,
    "limits": limits.limit_list,
    "intervals": limits.interval_list,
    "metrics": metrics.metric_list,
    "checks": diagnosis.check_table,
    "diagnosis-policy": diagnosis.policy,
    "prices": prices.price_table,
    "default-bill": prices.default_bill,
    "month": prices.month_table,
    "settings": settings.setting_list,
    "handlers": settings.handlers_environment_list,
    "packages": settings.handlers_package_list,
    "canary": settings.canary_list,
    "stack": settings.stack_list,
    "differences": settings.difference_table,
    "sizes": settings.size_table,
    "calls": api.calls,
    "task-fields": api.task_fields,
    "retry-fields": api.retry_fields,
    "schedule-fields": api.schedule_fields,
    "schedule-answer-fields": api.schedule_answer_fields,
    "calendar-fields": api.calendar_fields,
    "cron-dialects": cron.dialect_table,
    "cron-differences": cron.difference_table,
    "topology-fields": partial(api.request_fields, "TopologyCreate", besides="TaskCreate"),
    "node-fields": partial(api.request_fields, "TopologyNodeInput", besides="TaskCreate"),
    "topology-answer-fields": partial(api.response_fields, "Topology", besides="Task"),
    "node-answer-fields": partial(api.response_fields, "TopologyNode", besides="Task"),
    "lock-answer-fields": partial(api.response_fields, "Lock"),
    "lock-holder-fields": partial(api.response_fields, "LockHolder"),
    "lease-fields": partial(api.request_fields, "LeaseAcquire"),
    "lease-answer-fields": partial(api.response_fields, "Lease"),
    "lease-status-fields": partial(api.response_fields, "LeaseStatus"),
    "answer-fields": api.answer_fields,
    "parameters": api.parameters,
    "problems": api.problem_table,
    "roles": roles.role_table,
    "first-design-states": states.first_design_table,
    "names-first-designs": partial(api.foreign_names, "First designs"),
    "names-celery": partial(api.foreign_names, "Celery"),
    "names-eventbridge-scheduler": partial(api.foreign_names, "EventBridge Scheduler"),
    "names-temporal": partial(api.foreign_names, "Temporal"),
    "names-airflow": partial(api.foreign_names, "Airflow"),
    "names-qstash": partial(api.foreign_names, "QStash"),
    "celery-task-options": celery.task_options,
    "celery-call-options": celery.call_options,
    "celery-entry-keys": celery.entry_keys,
    "celery-settings": celery.settings,
}
"""The generators of sections, by the name in the marker."""


FILES: Mapping[Path, Callable[[], str]] = {
    REFERENCE / "events.json": events.schemas,
    REFERENCE / "asyncapi.json": lambda: f"{json.dumps(asyncapi.document(), indent=1, ensure_ascii=False)}\n",
    llms.FILE: llms.text,
}
"""The generators of whole files."""


class SectionUnknown(LookupError):
    """A marker names an unknown section."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no generated section {name!r}; there are {', '.join(SECTIONS)}")


def filled(page: str) -> str:
    """The page with its generated sections updated.

    Raises:
        SectionUnknown: it has a marker with an unknown name.
    """

    def section(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in SECTIONS:
            raise SectionUnknown(name)
        return f"{match[1]}\n{SECTIONS[name]()}\n\n{match[3]}"

    return SECTION.sub(section, page)


def generated_in(page: str) -> list[str]:
    """The names of a page's generated sections."""
    return [match["name"] for match in SECTION.finditer(page)]


def generated_pages() -> list[Path]:
    """The pages that may have generated sections."""
    return sorted([*REFERENCE.glob("*.md"), *MIGRATIONS.glob("*.md"), SECURITY, DIAGNOSIS, README])


def main() -> int:
    """Write the pages, or check them; returns 1 if a checked page is outdated."""
    parser = argparse.ArgumentParser(
        description="Write what the code knows into the pages of reference and migrations."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; name the pages that differ")
    is_check = parser.parse_args().check
    differing = 0
    for path in generated_pages():
        page = path.read_text(encoding="utf-8")
        if (new := filled(page)) != page:
            differing += 1
            sys.stdout.write(f"{'differs' if is_check else 'written'}: {path.name}\n")
            if not is_check:
                path.write_text(new, encoding="utf-8")
    for path, text in FILES.items():
        new = text()
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            differing += 1
            sys.stdout.write(f"{'differs' if is_check else 'written'}: {path.name}\n")
            if not is_check:
                path.write_text(new, encoding="utf-8")
    return int(is_check and differing > 0)


if __name__ == "__main__":
    raise SystemExit(main())
