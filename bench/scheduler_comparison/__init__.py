"""Compares lateness and throughput of one-time tasks in duetime and other schedulers; run on demand."""
