"""Draws flame graphs as SVG. A function's bar is on top of its caller's bar, and as wide as its share of samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WIDTH, _ROW, _LETTER, _LEAST, _SHORTEST = 1200, 17, 6.7, 2.0, 3
_OTHERS = "#d5d9e0"
_COLORS = {"duetime": "#8ab4f8", "pydantic": "#c7a6f0", "botocore": "#e3c48b"}
_LEGEND = {"duetime": "duetime", "pydantic": "pydantic", "botocore": "the AWS SDK", "": "Python and others"}


@dataclass(slots=True)
class Frame:
    """A function in a call tree.

    Attributes:
        samples: number of samples in which the function is on the stack.
        callees: the functions that the function called, by name.
    """

    samples: int = 0
    callees: dict[str, Frame] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Bar:
    row: int
    left: float
    width: float
    name: str


def tree(stacks: Iterable[str], roots: tuple[str, ...], waits: tuple[str, ...] = ()) -> Frame:
    """Merge sampled stacks into one tree, without stacks outside the measured work, such as those of idle threads.

    Args:
        stacks: lines with a stack's frames from the outermost to the innermost, joined by semicolons, then a space and
            the number of samples.
        roots: name prefixes of the functions that call the measured work.
        waits: name prefixes of functions that only wait when they are the innermost frame.
    """
    whole = Frame()
    for line in stacks:
        joined, _, count = line.rstrip().rpartition(" ")
        frames = joined.split(";")
        begins = [number for number, name in enumerate(frames, 1) if name.startswith(roots)]
        measured = frames[begins[-1] :] if begins else []
        if not measured or measured[-1].startswith(waits):
            continue
        at = whole
        at.samples += int(count)
        for name in measured:
            at = at.callees.setdefault(name, Frame())
            at.samples += int(count)
    return whole


def svg(whole: Frame, title: str) -> str:
    """Return the SVG, which omits bars narrower than two pixels; each bar's tooltip shows its share of the samples."""
    bars = list(_bars(whole, 0.0, 0, _WIDTH / max(whole.samples, 1)))
    height = (4 + max((bar.row for bar in bars), default=0)) * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        "<style>text{font:11px monospace;fill:#16202c}rect{stroke:#fff;stroke-width:.5}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="4" y="{_ROW - 4}">{escape(title)}: {whole.samples} samples</text>',
        *_legend(),
        *(_drawn(bar, height - (bar.row + 1) * _ROW) for bar in bars),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bars(at: Frame, left: float, row: int, scale: float) -> Iterator[_Bar]:
    for name, callee in sorted(at.callees.items()):
        width = callee.samples * scale
        if width >= _LEAST:
            yield _Bar(row, left, width, name)
            yield from _bars(callee, left, row + 1, scale)
        left += width


def _legend() -> Iterator[str]:
    for number, (package, label) in enumerate(_LEGEND.items()):
        x = 4 + 180 * number
        color = _COLORS.get(package, _OTHERS)
        yield f'<rect x="{x}" y="{_ROW + 2}" width="12" height="12" fill="{color}"/>'
        yield f'<text x="{x + 17}" y="{2 * _ROW - 5}">{label}</text>'


def _drawn(bar: _Bar, y: int) -> str:
    fits = bar.name[: int(bar.width / _LETTER)]
    text = f'<text x="{bar.left + 2:.0f}" y="{y + 12}">{escape(fits)}</text>' if len(fits) >= _SHORTEST else ""
    share = f"<title>{escape(bar.name)}: {bar.width / _WIDTH:.1%}</title>"
    box = f'x="{bar.left:.1f}" y="{y}" width="{bar.width:.1f}" height="{_ROW - 1}" fill="{_color(bar.name)}"'
    return f"<g>{share}<rect {box}/>{text}</g>"


def _color(name: str) -> str:
    path = name.rpartition("(")[2]
    return next((color for package, color in _COLORS.items() if path.startswith(package)), _OTHERS)
