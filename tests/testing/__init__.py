"""Tests the testing kit in the way users' tests use it, with the kit's own fixture `duetime`."""
