"""The real clock, randomness, threads, process and logs of a function."""
