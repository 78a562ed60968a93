"""The worker: claims due tasks from the queues, runs their targets and writes down how they ended."""
