"""The real time, chance, threads, process and logs of a function."""
