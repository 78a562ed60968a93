"""From due time to queue: timers, cursors, shards and redelivery."""
