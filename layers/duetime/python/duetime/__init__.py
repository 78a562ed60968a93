"""duetime: a distributed task scheduler that runs serverless in its user's own AWS account."""
