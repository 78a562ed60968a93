"""The package that the worker has if all handlers are in packages with functions of their own: it has no handlers."""
