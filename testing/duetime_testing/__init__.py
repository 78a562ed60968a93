"""Tests of duetime tasks, schedules and topologies in virtual time."""
