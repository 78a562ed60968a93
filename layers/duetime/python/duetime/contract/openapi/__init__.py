"""The OpenAPI document, made of what the operations declare and of the models that requests are read by."""
