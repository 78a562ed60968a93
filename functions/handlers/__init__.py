"""A handler package's function, which runs handlers for the worker, and reports to the attempts function."""
