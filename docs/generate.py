"""Generates sections of pages from the code, such as tables in the reference: `python docs/generate.py`.

A page marks a section with `<!-- generated: NAME -->` and `<!-- end -->`; the text between these comments is generated.
With `--check`, outdated pages are listed and no file is written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
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
    "picture": states.picture,
    "changeable": states.changeable,
    "event-kinds": events.event_kinds,
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
    "differences": settings.difference_table,
    "sizes": settings.size_list,
    "calls": api.calls,
    "task-fields": api.task_fields,
    "cron-dialects": cron.dialect_table,
    "cron-differences": cron.difference_table,
    "problems": api.problem_table,
    "roles": roles.role_table,
    "first-design-states": states.first_design_states,
    "names-elsewhere": api.foreign_names,
    "celery-task-options": celery.task_options,
    "celery-call-options": celery.call_options,
    "celery-entry-keys": celery.entry_keys,
    "celery-settings": celery.settings,
}
"""The functions that generate sections, by the name in the section's marker."""


FILES: Mapping[Path, Callable[[], str]] = {
    REFERENCE / "events.json": events.schemas,
    REFERENCE / "asyncapi.json": lambda: f"{json.dumps(asyncapi.document(), indent=1, ensure_ascii=False)}\n",
    llms.FILE: llms.text,
}
"""The functions that generate complete files, by path."""


class SectionUnknown(LookupError):
    """A page's marker names an unknown section."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no generated section {name!r}; there are {', '.join(SECTIONS)}")


def filled(page: str) -> str:
    """Return the page with its generated sections updated.

    Raises:
        SectionUnknown: the page has a marker with an unknown name.
    """

    def section(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in SECTIONS:
            raise SectionUnknown(name)
        return f"{match[1]}\n{SECTIONS[name]()}\n\n{match[3]}"

    return SECTION.sub(section, page)


def generated_in(page: str) -> list[str]:
    """Return the names of a page's generated sections."""
    return [match["name"] for match in SECTION.finditer(page)]


def generated_pages() -> list[Path]:
    """Return the pages that can have generated sections."""
    return sorted([*REFERENCE.glob("*.md"), *MIGRATIONS.glob("*.md"), SECURITY, DIAGNOSIS, README])


def main() -> int:
    """Write the generated text or, with `--check`, only compare it; return 1 if a compared page is outdated."""
    parser = argparse.ArgumentParser(description="Write the generated sections into the documentation pages.")
    parser.add_argument("--check", action="store_true", help="list the outdated pages without writing them")
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
