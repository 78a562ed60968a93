"""The trigger: due tasks to queues, and the recovery of what was left behind."""
