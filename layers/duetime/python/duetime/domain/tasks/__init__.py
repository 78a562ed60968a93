"""Defines tasks: their records, states, attempts and targets."""
