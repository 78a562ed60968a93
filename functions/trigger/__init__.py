"""The trigger: every minute, from EventBridge Scheduler, and from itself for one group of shards."""
