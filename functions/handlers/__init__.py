"""The function of a handler package: runs handlers for the worker; it may invoke only the attempts function."""
