"""Defines how each cron dialect interprets an expression, and how the dialects differ.

An expression can have several interpretations. A schedule can name a dialect. Otherwise, an expression is accepted only
if all dialects that accept it interpret it in the same way.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence


class Dialect(StrEnum):
    """The dialect of a cron expression.

    Attributes:
        CRON: 5 fields, or 6 with seconds first; rejects expressions that other crons interpret differently.
        VIXIE: the crontab of Vixie cron, Debian, cronie and the BSDs.
        KUBERNETES: robfig/cron, which Kubernetes and Prow use.
        QUARTZ: 6 fields with seconds first, and optionally a year; Sunday is 1.
        SPRING: 6 fields with seconds first; Sunday is 0.
        EVENTBRIDGE: `cron(...)` with a year as the sixth field, `rate(...)` and `at(...)`.
    """

    CRON = "cron"
    VIXIE = "vixie"
    KUBERNETES = "kubernetes"
    QUARTZ = "quartz"
    SPRING = "spring"
    EVENTBRIDGE = "eventbridge"


class Days(StrEnum):
    """How a day of the month and a day of the week are combined.

    Attributes:
        STAR: a match of either field is enough, but if one of the fields begins with `*`, both fields must match.
        EITHER: a match of either field is enough, but if one field is `*`, `*/1` or `?`, the other field decides.
        BOTH: both fields must match.
        ONE: one of the fields is `?`.
        AGREED: like `EITHER`, but expressions that other dialects interpret differently are rejected.
    """

    STAR = "star"
    EITHER = "either"
    BOTH = "both"
    ONE = "one"
    AGREED = "agreed"


@frozen
class DialectRules:
    """How a dialect parses an expression.

    Attributes:
        fields: allowed numbers of fields, the most common number first.
        has_year: whether the last field is a year if all fields are given.
        sunday_is_one: whether weekdays are 1 for Sunday to 7 for Saturday.
        days: how the two day fields are combined.
        has_macros: whether macros such as `@daily` are allowed.
        words: names of the expression's fields in errors.
    """

    fields: Sequence[int]
    words: str
    days: Days
    has_year: bool = False
    sunday_is_one: bool = False
    has_macros: bool = True


RULES: dict[Dialect, DialectRules] = {
    Dialect.CRON: DialectRules((5, 6), "5 fields, or 6 with seconds first", Days.AGREED),
    Dialect.VIXIE: DialectRules((5,), "5 fields, as in a crontab", Days.STAR),
    Dialect.KUBERNETES: DialectRules((5, 6), "5 fields, or 6 with seconds first", Days.EITHER),
    Dialect.QUARTZ: DialectRules(
        (6, 7),
        "Quartz's 6 fields with seconds first, or 7 with a year last",
        Days.ONE,
        has_year=True,
        sunday_is_one=True,
        has_macros=False,
    ),
    Dialect.SPRING: DialectRules((6,), "Spring's 6 fields with seconds first", Days.BOTH),
    Dialect.EVENTBRIDGE: DialectRules(
        (6,),
        "EventBridge's 6 fields, the last a year",
        Days.ONE,
        has_year=True,
        sunday_is_one=True,
        has_macros=False,
    ),
}


@frozen
class Difference:
    """An expression that crons interpret differently.

    Attributes:
        text: the expression.
        readings: the interpretations, with sources.
        here: how `dialect: cron` handles the expression.
        rejected: whether `dialect: cron` rejects the expression.
        dialects: dialects that accept the expression, with their interpretations.
    """

    text: str
    readings: Sequence[str]
    here: str
    rejected: bool = True
    dialects: Sequence[Dialect] = ()


DIFFERENCES: Sequence[Difference] = (
    Difference(
        "0 0 */2 * 1-5",
        (
            "Vixie, Debian, cronie (crontab(5)): days that both fields match",
            "Kubernetes, Prow (robfig/cron 3), Airflow (croniter), GitLab (fugit), Laravel: days that either matches",
        ),
        "rejected; `1-31/2` is either everywhere",
        dialects=(Dialect.VIXIE, Dialect.KUBERNETES),
    ),
    Difference(
        "0 0 */1 * 5",
        ("Vixie, robfig/cron: Fridays, `*/1` is `*`", "croniter: every day"),
        "rejected: write `*`",
        dialects=(Dialect.VIXIE, Dialect.KUBERNETES),
    ),
    Difference(
        "0 0 13 * 5",
        (
            "POSIX crontab, Vixie, Kubernetes, Airflow, GitLab: the 13th, or a Friday",
            "APScheduler, Hangfire (Cronos): a Friday the 13th, as Celery's `crontab()`",
        ),
        "the 13th, or a Friday, as in POSIX; the `description` says so",
        rejected=False,
        dialects=(Dialect.VIXIE, Dialect.KUBERNETES),
    ),
    Difference(
        "0 0 0 13 * 5",
        (
            "robfig/cron with seconds: the 13th, or a Friday",
            "Spring, NCRONTAB (Azure Functions), Cronos: a Friday the 13th",
        ),
        "rejected",
        dialects=(Dialect.KUBERNETES, Dialect.SPRING),
    ),
    Difference(
        "0 0 12 ? * 2",
        ("Quartz: Monday, because Sunday is 1", "Spring, robfig/cron: Tuesday, because Sunday is 0"),
        "rejected; names of days are the same everywhere",
        dialects=(Dialect.QUARTZ, Dialect.SPRING, Dialect.KUBERNETES),
    ),
    Difference(
        "0 15 10 ? * 6L",
        ("Quartz: the last Friday of the month", "Spring: the last Saturday"),
        "rejected: write `FRIL` or `SATL`",
        dialects=(Dialect.QUARTZ, Dialect.SPRING),
    ),
    Difference(
        "0 0 * * 1",
        ("crons: Monday", "APScheduler: Tuesday, because Monday is 0"),
        "Monday; the `description` says so",
        rejected=False,
    ),
    Difference(
        "0 9 * * 1 0",
        (
            "seconds first (Spring, robfig/cron, NCRONTAB): minute 9 of every hour of January's Sundays",
            "croniter: Monday 09:00:00, because seconds are last",
        ),
        "rejected where it would be every hour of some months that are numbers: write `0-23`, or the month's name",
    ),
    Difference(
        "0 9 * * * 0",
        ("seconds first: minute 9 of every hour on Sunday", "croniter: 09:00:00 every day, because seconds are last"),
        "minute 9 of every hour on Sunday; the `description` says so",
        rejected=False,
    ),
    Difference(
        "0 10 * * ? *",
        ("EventBridge: 10:00 every day, because the last field is a year", "others: not accepted"),
        "rejected",
        dialects=(Dialect.EVENTBRIDGE,),
    ),
    Difference(
        "0 0 * * L",
        ("Quartz, EventBridge: each Saturday", "others: not accepted"),
        "rejected: write `SAT`, or `SATL` for the last one of a month",
    ),
    Difference(
        "0 0 * * 1/2",
        ("croniter, robfig/cron: Monday, Wednesday and Friday", "cronsim: Sunday, too, because the week ends with 7"),
        "rejected: write the whole range, such as `1-6/2`",
    ),
    Difference(
        "17 23-23/24 * * *",
        ("Vixie, robfig/cron: 23:17 every day", "croniter: minute 17 of midnight's hour"),
        "23:17 every day",
        rejected=False,
        dialects=(Dialect.VIXIE, Dialect.KUBERNETES),
    ),
    Difference(
        "0 22-4/2 * * *",
        ("croniter: 22:00, 00:00, 02:00 and 04:00", "Vixie, robfig/cron: not accepted"),
        "rejected: write two ranges",
    ),
    Difference(
        "H H * * *",
        ("Jenkins: once a day, at a time that follows from the job's name",),
        "rejected: write a time, and `spread_seconds`",
    ),
    Difference(
        "@daily",
        ("crons: midnight", "Jenkins: some time of the day"),
        "midnight; add `spread_seconds`",
        rejected=False,
        dialects=(Dialect.VIXIE, Dialect.KUBERNETES, Dialect.SPRING),
    ),
    Difference(
        "0~59 * * * *",
        ("cronie, OpenBSD: a random minute",),
        "rejected: write a time, and `spread_seconds` or `jitter_seconds`",
    ),
    Difference(
        "TZ=Asia/Tokyo 0 9 * * *",
        ("robfig/cron: 09:00 in Tokyo (also `CRON_TZ=`)", "others: not accepted"),
        "rejected: write `timezone`; `apply --format prow` does so",
    ),
    Difference(
        "0 9 * * * Asia/Tokyo",
        ("fugit (Sidekiq, GitLab): 09:00 in Tokyo", "others: not accepted"),
        "rejected: write `timezone`",
    ),
    Difference(
        "@every 4h",
        ("robfig/cron: every 4 hours from the start on", "others: not accepted"),
        "rejected: write `rate`; `apply --format prow` does so",
    ),
    Difference(
        "Mon..Fri 10:00",
        ("systemd (OnCalendar): 10:00 on Monday to Friday", "others: not accepted"),
        "rejected: write `0 10 * * mon-fri`",
    ),
)
"""Documented differences between the dialects; the reference page is generated from them."""
