"""Switches: set by administrators, respected by everything that starts tasks."""
