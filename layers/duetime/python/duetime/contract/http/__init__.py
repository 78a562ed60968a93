"""Common parts of all requests and responses: JSON, errors, page tokens, the OpenAPI document."""
