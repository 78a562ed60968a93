"""The package that the worker has if all handlers are in packages with their own functions: it has no handlers."""
