"""A boto3 session that uses the testing kit's fakes, and random calls that compare the fakes with real engines."""
