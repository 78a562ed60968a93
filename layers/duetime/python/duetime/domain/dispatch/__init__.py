"""Moves due tasks to queues, with timers, cursors, shards and redelivery."""
