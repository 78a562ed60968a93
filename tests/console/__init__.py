"""Tests of the web console in a real browser, over the unmodified functions in virtual time."""
