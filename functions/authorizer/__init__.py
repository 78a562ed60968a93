"""The authorizer function: checks API keys for API Gateway."""
