"""Contains the trigger, which sends due tasks to queues, and recovers lost tasks."""
