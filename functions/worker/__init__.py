"""The worker function: claims due tasks from the queues, runs their targets and records their ends."""
