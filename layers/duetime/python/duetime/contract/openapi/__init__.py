"""The OpenAPI document, generated from the declared operations and the models of requests and responses."""
