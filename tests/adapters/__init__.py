"""Tests of each port's adapters against the behavior that the port documents."""
