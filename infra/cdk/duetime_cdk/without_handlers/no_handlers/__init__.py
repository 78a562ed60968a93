"""The empty handlers' package that the worker gets if all handlers are in packages with their own functions."""
