"""Keeps lists of an owner's tasks, for example by state, type, name and tag, and reads these lists."""
