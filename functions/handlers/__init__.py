"""The function of a package of handlers: runs them for the worker; it may only invoke the attempts function."""
