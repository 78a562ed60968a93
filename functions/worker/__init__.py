"""The worker function, which claims due tasks from the queues, runs their targets and records how they ended."""
