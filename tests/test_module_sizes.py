"""The modules of the core stay short enough to be read at once."""

from __future__ import annotations

from pathlib import Path

CORE = Path(__file__).parents[1] / "layers" / "duetime" / "python" / "duetime"
MOST_LINES = 250
MOST_LINES_OF_A_COMPOSITION = 150


def test_no_module_of_the_core_is_too_long() -> None:
    """A module of the core has at most 250 lines, one of the composition at most 150: a longer one is split."""
    lines = {
        module.relative_to(CORE).as_posix(): len(module.read_text(encoding="utf-8").splitlines())
        for module in CORE.rglob("*.py")
    }
    too_long = {
        name: count
        for name, count in lines.items()
        if count > (MOST_LINES_OF_A_COMPOSITION if name.startswith("composition/") else MOST_LINES)
    }
    assert lines
    assert too_long == {}
