"""The trigger function, which EventBridge Scheduler invokes every minute; it invokes itself for each shard group."""
