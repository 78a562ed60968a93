"""The queues between the trigger and the workers, in SQS."""
