"""The trigger function, which EventBridge Scheduler invokes every minute.

If there are several groups of shards, it invokes itself for each group.
"""
