"""The rhythm of wall times by a zone's clock, which now and then leaves some out or shows them twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.schedules.dst_notes import gap_words, twice, written
from duetime.domain.schedules.local_time import LAST_WALL, LocalTimePattern, Wall, clock_text
from duetime.domain.schedules.recurrences import Clock, Lost
from duetime.domain.schedules.time_zones import Fold, Gap, Piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.times import Millis

_NAMED = 3
"""So many wall times that a clock jumped over are named, and the others counted."""


@dataclass(frozen=True, slots=True)
class ZonedRecurrence:
    """Instants at which the clock of a zone shows a time of a pattern."""

    pattern: LocalTimePattern
    clock: Clock

    def after(self, at: Millis) -> Millis | None:
        """The first instant after `at`."""
        start = max(at, -1) + 1
        for number, piece in enumerate(self.clock.zone.pieces_from(start)):
            first = max(start, piece.start)
            if first == piece.start and self._shifted(piece):
                return first
            wall = self.pattern.next(max(first + piece.offset, self._unseen(piece)))
            if wall is None or wall > LAST_WALL:
                if number:
                    return None
            elif wall - piece.offset < piece.end:
                return wall - piece.offset
        return None

    def before(self, at: Millis) -> Millis | None:
        """The last instant before `at`."""
        end = min(at, LAST_WALL + 1) - 1
        if end < 0:
            return None
        for number, piece in enumerate(self.clock.zone.pieces_until(end)):
            wall = self.pattern.previous(min(end, piece.end - 1) + piece.offset)
            if wall is None and number:
                return None
            if wall is not None and wall >= max(piece.start + piece.offset, self._unseen(piece)):
                return wall - piece.offset
            if self._shifted(piece):
                return piece.start
        return None

    def count(self, after: Millis, until: Millis) -> int:
        """How many instants lie in (after, until]."""
        start, end = max(after, -1) + 1, min(until, LAST_WALL) + 1
        total = 0
        for piece in self._pieces(start, end):
            first = max(start, piece.start)
            from_wall = max(first + piece.offset, self._unseen(piece))
            total += self.pattern.count(from_wall, min(end, piece.end) + piece.offset)
            if first == piece.start and self._shifted(piece):
                total += self.pattern.count(from_wall, from_wall + 1) == 0
        return total

    def note(self, at: Millis) -> str:
        """What was decided about one of its instants."""
        pieces = self.clock.zone.pieces_from(at)
        piece, following = next(pieces), next(pieces)
        if at == piece.start and self._shifted(piece):
            return self._words(piece, f"runs at {clock_text(at + piece.offset)} instead")
        wall = at + piece.offset
        for fold, which in ((piece.fold, "second"), (following.fold, "first")):
            if fold is not None and fold[0] <= wall < fold[1]:
                return self._fold_words(wall, which)
        return ""

    def lost(self, after: Millis, until: Millis) -> Sequence[Lost]:
        """What the clock jumped over in (after, until]."""
        found: list[Lost] = []
        if self.pattern.follows_clock or self.clock.gap is Gap.SHIFT_FORWARD:
            return found
        for piece in self._pieces(max(after, -1) + 1, until + 1):
            if self.pattern.next(piece.start + piece.before) is None:
                break
            if piece.start > after and self._skips(piece):
                found.append(Lost(piece.start, self._key_in_gap(piece), self._words(piece, "skipped")))
        return found

    def _pieces(self, start: Millis, end: Millis) -> Iterator[Piece]:
        """The pieces that have a part in [start, end)."""
        if start < end:
            for piece in self.clock.zone.pieces_from(start):
                if piece.start >= end:
                    return
                yield piece

    def _unseen(self, piece: Piece) -> Wall:
        """The first wall time of a piece that counts: what the clock has shown before may not."""
        again = self.pattern.follows_clock or self.clock.fold is Fold.BOTH
        return piece.start + (piece.offset if again else max(piece.offset, piece.before))

    def _skips(self, piece: Piece) -> bool:
        """Whether the jump at the start of a piece leaves out any wall time of the pattern."""
        gap = piece.gap
        if gap is None:
            return False
        wall = self.pattern.next(gap[0])
        return wall is not None and wall < gap[1]

    def _shifted(self, piece: Piece) -> bool:
        """Whether wall times that the clock jumped over come at the start of a piece."""
        return self.clock.gap is Gap.SHIFT_FORWARD and not self.pattern.follows_clock and self._skips(piece)

    def _key_in_gap(self, piece: Piece) -> str:
        wall = self.pattern.next(piece.start + piece.before)
        return written(wall or 0, piece.before)

    def _words(self, piece: Piece, decision: str) -> str:
        start, end = piece.start + piece.before, piece.start + piece.offset
        walls: list[Wall] = []
        wall = self.pattern.next(start)
        while wall is not None and wall < end and len(walls) < _NAMED:
            walls.append(wall)
            wall = self.pattern.next(wall + 1)
        return gap_words(walls, self.pattern.count(start, end), self.clock.zone, decision)

    def _fold_words(self, wall: Wall, which: str) -> str:
        if self.pattern.follows_clock:
            decision = "runs both times, because the hour is a wildcard"
        else:
            decision = "runs both times" if self.clock.fold is Fold.BOTH else "runs the first time only"
        return f"{twice(wall, self.clock.zone)}, this is the {which}: {decision}"
