"""Tests that generated sections of the docs are current, and that everything that a page names exists in the code."""
