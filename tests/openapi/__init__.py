"""Tests the OpenAPI document in the ways users use it, with its examples, linters and generated clients."""
