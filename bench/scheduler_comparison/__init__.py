"""Compares lateness and throughput of one-time tasks in duetime and other schedulers on one machine; run on demand."""
