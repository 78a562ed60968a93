"""The worker: claims deliveries, runs attempts, and handles dead letters."""
