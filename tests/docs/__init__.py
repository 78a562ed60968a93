"""Tests that the docs agree with the code: generated sections are current, and everything that a page names exists."""
