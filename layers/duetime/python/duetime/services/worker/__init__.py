"""Contains the worker, which claims deliveries, runs attempts, and handles dead letters."""
