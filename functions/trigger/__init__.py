"""The trigger function: invoked every minute by EventBridge Scheduler, and by itself for each group of shards."""
