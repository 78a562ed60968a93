"""The trigger: sends due tasks to queues, and recovers lost tasks."""
