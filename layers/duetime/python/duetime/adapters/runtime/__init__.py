"""A function's real clock, randomness, threads, process and logs."""
