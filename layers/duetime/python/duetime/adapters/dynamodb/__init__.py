"""The stores that use the tasks table in DynamoDB."""
