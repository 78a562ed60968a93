"""The trigger function, which EventBridge Scheduler invokes every minute.

It invokes itself for each group of shards.
"""
