"""The archive function: copies records that TTL removes from the table to S3."""
