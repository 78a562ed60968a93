"""The real time, randomness, threads, process and logs of a function."""
