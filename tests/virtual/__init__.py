"""Virtual time: the use cases run concurrently, deterministically and without waiting."""
