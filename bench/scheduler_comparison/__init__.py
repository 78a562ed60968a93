"""Compares the lateness and throughput of one-time tasks in duetime and other schedulers; run only on demand."""
