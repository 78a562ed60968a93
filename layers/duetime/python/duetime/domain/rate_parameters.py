"""How rates are run: margins, waits and sizes that no user sets."""

from __future__ import annotations

from duetime.domain.times import DAY, SECOND

MAX_STARTS_PER_RATE_PART = 250
"""Starts a second that one item counts: a rate that allows more is divided among several items. DynamoDB takes 1,000
writes a second of one item (Source: DynamoDB Developer Guide, "Designing partition keys"); the rest is for tasks that
take a place in line."""
RATE_SLACK = 200
"""How long an attempt may begin after its start was granted, at most; one in twenty parts of a short window."""
RATE_HOLD = SECOND
"""How long a worker waits for the start of a task whose rate allows it so soon; later ones are put back."""
RATE_LATE_COMER = 30 * SECOND
"""A task that comes so long after its turn takes a new place, if it cannot start at once."""
RATE_BUSY_WAIT = 5 * SECOND
"""How much longer than a second, at most, a task waits whose rate could not be asked, or only with too much delay."""
RATE_LIFE = 7 * DAY
"""A part of a rate is removed this long after nothing depends on it any more."""
