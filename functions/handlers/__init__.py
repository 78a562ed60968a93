"""A handler package's function, which runs handlers for the worker. It may invoke only the attempts function."""
