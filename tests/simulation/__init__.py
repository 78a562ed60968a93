"""Fault simulations in virtual time: faults are random, and the same seed repeats the same run."""
