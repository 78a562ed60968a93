"""Counting tasks, and telling the counts."""
