"""The OpenAPI document as others use it: its examples, linters, and clients that are generated of it."""
