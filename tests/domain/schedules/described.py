"""Reads a description in English, as a person would, to find the times of day and the days that it names."""

from __future__ import annotations

import re
from calendar import day_name, month_name, monthrange
from dataclasses import dataclass, field
from datetime import date
from itertools import product

_NUMBERS = {"second": 2, "third": 3}
_WHICH = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_DAYS, _MONTHS = list(day_name), list(month_name)
_YEARS = re.compile(r" in (every \w+ year from year \d+ to \d+|\d{4}(?:(?:, | and | to )\d{4})*)$")
_IN_MONTHS = re.compile(rf",? in ((?:(?:, | and | to )?(?:{'|'.join(_MONTHS[1:])}))+)$")
_FROM_END = r"the last day|the day before the last day|the day \d+ days before the last day"
_DATE = re.compile(
    rf"the last working day|the working day nearest to (?:day \d+|{_FROM_END})|{_FROM_END}"
    r"|every \w+ day from day \d+(?: to \d+)?|\d+ to \d+|\d+"
)
_SATURDAY = 5


@dataclass
class Meaning:
    """The meaning of a description.

    Attributes:
        times: the times of day, in seconds since midnight.
        dates: the parts of the text that name a day by its date; `None` for every day.
        weekdays: the parts of the text that name a day by its weekday; `None` for every day.
        either: whether a day matches if only its date or only its weekday does.
    """

    times: set[int]
    dates: list[str] | None = None
    weekdays: list[str] | None = None
    either: bool = False
    months: set[int] = field(default_factory=lambda: set(range(1, 13)))
    years: set[int] | None = None

    def has_day(self, day: date) -> bool:
        """Whether the description names a day."""
        if day.month not in self.months or (self.years is not None and day.year not in self.years):
            return False
        by_date = self.dates is None or any(_is_date(atom, day) for atom in self.dates)
        by_weekday = self.weekdays is None or any(_is_weekday(atom, day) for atom in self.weekdays)
        return by_date or by_weekday if self.either else by_date and by_weekday


def read(words: str) -> Meaning:
    """Read a complete description."""
    years = months = None
    if found := _YEARS.search(words):
        years, words = _numbers(found[1]), words[: found.start()]
    if found := _IN_MONTHS.search(words):
        months = {number for number in range(1, 13) if number in _named(found[1], _MONTHS)}
        words = words[: found.start()]
    time, _, days = words.partition(" on ")
    meaning = Meaning(_times(time.removesuffix(" every day")), years=years)
    if months is not None:
        meaning.months = months
    if days:
        for separator in (", or on ", " or on ", " if that day is "):
            if separator in days:
                date_words, weekday_words = days.split(separator)
                meaning.dates, meaning.weekdays = _DATE.findall(date_words), _weekdays(weekday_words)
                meaning.either = "or on" in separator
                return meaning
        if any(name in days for name in _DAYS):
            meaning.weekdays = _weekdays(days)
        else:
            meaning.dates = _DATE.findall(days)
    return meaning


def _times(text: str) -> set[int]:
    if re.fullmatch(r"at \d\d:\d\d.*", text):
        clocks = [(*map(int, each.split(":")), 0)[:3] for each in re.findall(r"\d\d:\d\d(?::\d\d)?", text)]
        return {hour * 3600 + minute * 60 + second for hour, minute, second in clocks}
    seconds, minutes, hours = {0}, {0}, set(range(24))
    if found := re.search(r" at second (\d+)", text):
        seconds, text = {int(found[1])}, text.replace(found[0], "")
    patterns = (
        (r"every(?: \d+)? hours?(?: from \d\d:\d\d| at minute \d+)?", "hour"),
        (rf"{_of('second', 'minute')}(?: of (?P<minutes>{_list('minute')}))?(?P<within>.*)", "second"),
        (rf"{_of('minute', 'hour')}(?P<within>.*)", "minute"),
    )
    for pattern, unit in patterns:
        if not (found := re.fullmatch(pattern, text)):
            continue
        if unit == "hour":
            step, first = re.search(r"every (\d+)", text), re.search(r"from (\d\d):(\d\d)", text)
            minute = re.search(r"at minute (\d+)", text)
            hours = set(range(int(first[1]) if first else 0, 24, int(step[1]) if step else 1))
            minutes = {int(first[2] if first else minute[1] if minute else 0)}
        else:
            values = _values(found["values"], 60)
            if unit == "second":
                seconds, minutes = values, _numbers(found["minutes"]) if found["minutes"] else set(range(60))
            else:
                minutes = values
            hours = _hours(found["within"])
        return {hour * 3600 + minute * 60 + second for hour, minute, second in product(hours, minutes, seconds)}
    raise AssertionError(f"no sentence about times: {text}")


def _list(unit: str) -> str:
    return rf"every \w+ {unit} from {unit} \d+ to \d+|{unit}s? \d+(?:(?:, | and | to )\d+)*"


def _of(unit: str, size: str) -> str:
    """All spellings of some minutes of every hour, or of some seconds of every minute."""
    listed = rf"at (?:{_list(unit)})(?: of every {size}|(?= of ))"
    return rf"(?P<values>every {unit}|every \d+ {unit}s(?: from {unit} \d+)?|{listed})"


def _values(text: str, size: int) -> set[int]:
    if found := re.fullmatch(r"every (?:(\d+) )?\w+?(?: from \w+ (\d+))?", text):
        return set(range(int(found[2] or 0), size, int(found[1] or 1)))
    return _numbers(text)


def _hours(text: str) -> set[int]:
    if not text:
        return set(range(24))
    if found := re.fullmatch(r" in every (\w+) hour(?: from (\d\d):00)?", text):
        return set(range(int(found[2] or 0), 24, _ordinal(found[1])))
    if spans := re.findall(r"from (\d\d):00 to (\d\d):59", text):
        return {hour for first, last in spans for hour in range(int(first), int(last) + 1)}
    return _numbers(text)


def _numbers(text: str) -> set[int]:
    if found := re.search(r"every (\w+) \w+ from \w+ (\d+) to (\d+)", text):
        return set(range(int(found[2]), int(found[3]) + 1, _ordinal(found[1])))
    spans = re.findall(r"(\d+)(?: to (\d+))?", text)
    return {number for first, last in spans for number in range(int(first), int(last or first) + 1)}


def _named(text: str, names: list[str]) -> set[int]:
    found = re.findall(r"(\w+) to (\w+)|(\w+)", text.replace(" and ", " , "))
    spans = [(first or single, last or single) for first, last, single in found]
    return {number for first, last in spans for number in range(names.index(first), names.index(last) + 1)}


def _weekdays(text: str) -> list[str]:
    if "the month" in text:
        return re.findall(r"the \w+ \w+day", text)
    return [_DAYS[number] for number in _named(text, _DAYS)]


def _ordinal(word: str) -> int:
    return _NUMBERS[word] if word in _NUMBERS else int(word[:-2])


def _is_weekday(atom: str, day: date) -> bool:
    *which, name = atom.split()
    if _DAYS[day.weekday()] != name:
        return False
    if not which:
        return True
    length = monthrange(day.year, day.month)[1]
    return day.day + 7 > length if which[1] == "last" else (day.day - 1) // 7 + 1 == _WHICH[which[1]]


def _is_date(atom: str, day: date) -> bool:
    length = monthrange(day.year, day.month)[1]
    if atom == "the last working day":
        return day.day == _nearest(length, day)
    if atom.startswith("the working day nearest to "):
        aim = atom.removeprefix("the working day nearest to ")
        return day.day == _nearest(int(aim[4:]) if aim.startswith("day ") else length - _before(aim), day)
    if atom.startswith("the "):
        return day.day == length - _before(atom)
    if found := re.fullmatch(r"every (\w+) day from day (\d+)(?: to (\d+))?", atom):
        return day.day in range(int(found[2]), int(found[3] or 31) + 1, _ordinal(found[1]))
    return day.day in _numbers(atom)


def _before(text: str) -> int:
    if text == "the last day":
        return 0
    return 1 if text == "the day before the last day" else int(text.split()[2])


def _nearest(number: int, day: date) -> int | None:
    length = monthrange(day.year, day.month)[1]
    if not 1 <= number <= length:
        return None
    working = [
        (abs(each - number), each)
        for each in range(1, length + 1)
        if date(day.year, day.month, each).weekday() < _SATURDAY
    ]
    return min(working)[1]
