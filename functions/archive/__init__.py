"""Archive: copies the records that TTL removes from the table to S3."""
