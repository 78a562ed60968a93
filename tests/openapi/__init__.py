"""Tests of the OpenAPI document as users use it: its examples, linters, and generated clients."""
