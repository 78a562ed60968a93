from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from duetime_local.ready_file import AlreadyUp, Ready, announced, find, reject_if_taken

if TYPE_CHECKING:
    from pathlib import Path


def test_the_ready_file_exists_exactly_while_the_stack_runs(tmp_path: Path) -> None:
    """The ready file is complete, and exists only while the stack is up."""
    path = tmp_path / "folder" / "ready.json"
    ready = Ready("http://127.0.0.1:1/api", "http://127.0.0.1:1", os.getpid())

    with announced(ready, path):
        assert find(path) == ready
        assert json.loads(path.read_text()).keys() == {
            *("api_url", "aws_endpoint_url", "pid"),
            *("console_url", "websocket_url"),
        }

    assert find(path) is None
    assert list(path.parent.iterdir()) == []


def test_a_ready_file_of_a_dead_process_is_ignored(tmp_path: Path) -> None:
    """A stack that was killed is not found, although its file still exists."""
    path = tmp_path / "ready.json"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    path.write_text(json.dumps({"api_url": "http://x", "aws_endpoint_url": "http://x", "pid": ended.pid}))

    assert find(path) is None


def test_a_ready_file_whose_process_number_another_user_has_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stack is not found if its process number now belongs to a process that this user may not signal."""
    path = tmp_path / "ready.json"
    path.write_text(json.dumps({"api_url": "http://x", "aws_endpoint_url": "http://x", "pid": 1}))

    def kill(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    assert find(path) is None


def test_a_second_stack_does_not_replace_the_ready_file(tmp_path: Path) -> None:
    """A second stack does not replace a running stack's file, but may replace the file of a stack that has ended."""
    path = tmp_path / "ready.json"
    reject_if_taken(path)
    up = Ready("http://127.0.0.1:1/api", "http://127.0.0.1:1", os.getpid())
    with announced(up, path), pytest.raises(AlreadyUp, match=r"127\.0\.0\.1:1/api"):
        reject_if_taken(path)
    reject_if_taken(path)


def test_the_ready_file_of_a_later_stack_is_not_removed(tmp_path: Path) -> None:
    """A stack that ends removes only its own ready file."""
    path = tmp_path / "ready.json"
    later = Ready("http://127.0.0.1:2/api", "http://127.0.0.1:2", os.getpid())

    with announced(Ready("http://127.0.0.1:1/api", "http://127.0.0.1:1", os.getpid()), path), announced(later, path):
        pass
    with announced(Ready("http://127.0.0.1:1/api", "http://127.0.0.1:1", os.getpid()), path):
        path.write_text(json.dumps({"api_url": later.api_url, "aws_endpoint_url": "http://x", "pid": later.pid}))

    assert path.exists()
