"""The authorizer function, which checks API keys for API Gateway."""
