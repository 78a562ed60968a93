"""A boto3 session over the testing kit's fakes, and random calls that compare the fakes with real engines."""
