"""The tasks table on DynamoDB."""
