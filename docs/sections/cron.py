"""Generates tables of cron dialects and of expressions whose meaning differs between cron programs."""

from __future__ import annotations

from docs.sections.markdown import code, table
from duetime.domain.schedules.cron_dialects import DIFFERENCES, RULES, Days, Dialect, DialectRules

_USERS = {
    Dialect.CRON: "expressions that all cron programs read alike; the default",
    Dialect.VIXIE: "crontabs of Vixie cron, Debian, cronie and the BSDs",
    Dialect.KUBERNETES: "Kubernetes, Prow and other users of robfig/cron 3; also Airflow and GitLab, except for `*/1`",
    Dialect.QUARTZ: "Quartz",
    Dialect.SPRING: "Spring; also NCRONTAB (Azure Functions) and Cronos (Hangfire) with seconds",
    Dialect.EVENTBRIDGE: "EventBridge and EventBridge Scheduler",
}
_DAYS = {
    Days.AGREED: "either; expressions that others read differently are rejected",
    Days.STAR: "either; both, if one of the fields begins with `*`",
    Days.EITHER: "either; `*`, `?` and `*/1` mean every day",
    Days.BOTH: "both",
    Days.ONE: "one of them is `?`",
}


def dialect_table() -> str:
    """Return a table of the dialects with their fields, Sunday's number, and the meaning if both day fields are set."""
    rows = [
        (code(dialect), _USERS[dialect], rules.words, _sunday(rules), _DAYS[rules.days])
        for dialect, rules in RULES.items()
    ]
    return table(("`dialect`", "for", "fields", "Sunday", "a day of the month and a day of the week"), rows)


def difference_table() -> str:
    """Return a table of expressions that are accepted without a dialect although programs read them differently."""
    rows = [
        (code(each.text), "<br>".join(each.readings), each.here)
        for each in DIFFERENCES
        if not each.here.startswith("rejected")
    ]
    return table(("expression", "how programs read it", "in duetime, without `dialect`"), rows)


def _sunday(rules: DialectRules) -> str:
    return "1" if rules.sunday_is_one else "0 or 7"
