"""Tests the faster expressions and copies for the embedded DynamoDB."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from duetime_local.emulator.table_speed import copied, speed_up


def test_a_copy_of_an_item_shares_no_mutable_values() -> None:
    """A change to a copy, at any depth, does not change the item; bytes are copied, too."""
    item = {"a": {"S": "x"}, "l": {"L": [{"M": {"n": {"N": "1"}}}]}, "b": bytearray(b"b"), "s": {1, 2}, "f": False}
    copy = copied(item)
    assert copy == item
    copy["l"]["L"][0]["M"]["n"]["N"] = "2"
    copy["a"]["S"], copy["b"][0] = "y", 0
    copy["s"].add(3)
    assert item == {
        "a": {"S": "x"}, "l": {"L": [{"M": {"n": {"N": "1"}}}]}, "b": bytearray(b"b"), "s": {1, 2}, "f": False
    }  # fmt: skip


def test_the_tokens_of_an_expression_are_cached_and_copied() -> None:
    """Each caller gets a separate list of the same tokens."""
    texts: list[str] = []

    def tokenize(text: str) -> list[str]:
        texts.append(text)
        return text.split()

    engine: Any = SimpleNamespace(_tokenize=tokenize)
    speed_up(engine)
    first = engine._tokenize("a = b")
    first.clear()
    assert engine._tokenize("a = b") == ["a", "=", "b"]
    assert texts == ["a = b"]
    assert engine.copy.deepcopy({"a": [1]}) == {"a": [1]}
