"""duetime is a distributed, serverless task scheduler that runs in its user's own AWS account."""
