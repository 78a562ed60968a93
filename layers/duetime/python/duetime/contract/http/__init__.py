"""What all requests and answers share: JSON, errors, page tokens, the OpenAPI document."""
