"""Tests of the web console in a real browser, with the unmodified functions in virtual time."""
