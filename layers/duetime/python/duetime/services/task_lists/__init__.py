"""Keeps lists of an owner's tasks by state, type, name, tag and more, and reads these lists."""
