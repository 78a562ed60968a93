"""Common parts of all requests and responses, such as JSON, errors, page tokens and entity tags."""
