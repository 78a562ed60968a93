"""duetime: a distributed task scheduler that lives serverless in its user's own AWS account."""
