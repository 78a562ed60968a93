from __future__ import annotations

import os
import subprocess
import sys

import pytest

from duetime_local.cloud_assembly import LAST_LINES, ToolFailed, run_tool
from tests.waiting import until


def test_the_last_lines_of_a_failed_tool_are_shown() -> None:
    """If a failed tool has a long output, only the end is shown, because the end contains the reason."""
    program = f"for line in range({LAST_LINES + 5}): print('line', line)\nraise SystemExit('no such luck')"

    with pytest.raises(ToolFailed) as failed:
        run_tool("deploying", [sys.executable, "-uc", program], dict(os.environ), lambda _: None)

    assert "deploying failed" in str(failed.value)
    assert str(failed.value).endswith("no such luck")
    assert "line 0\n" not in str(failed.value)


def test_output_lines_of_a_tool_are_passed_on_in_order() -> None:
    """Every line of a tool's output that is not empty is passed on, in order."""
    lines: list[str] = []

    run_tool("deploying", [sys.executable, "-c", "print('one\\n\\n  two')"], dict(os.environ), lines.append)

    assert lines == ["one", "two"]


CHILD = "import subprocess, sys; child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); child.wait()"


def test_an_interrupted_tool_leaves_no_child_processes() -> None:
    """If the user interrupts a tool at the terminal, the processes that the tool has started also end."""
    pids: list[int] = []

    def interrupt(line: str) -> None:
        pids.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tool("deploying", [sys.executable, "-c", CHILD], dict(os.environ), interrupt)

    (pid,) = pids
    assert until(lambda: has_ended(pid))


def has_ended(pid: int) -> bool:
    """Return whether a process is gone or a zombie."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout  # noqa: S603, S607 - a number of ours
    return state.strip()[:1] in {"", "Z"}
