"""The archive function, which copies records that TTL removes from the table to S3."""
