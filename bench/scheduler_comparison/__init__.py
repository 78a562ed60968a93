"""How late and how fast duetime and other schedulers start one-time tasks, on one machine in one run: on demand."""
