"""A boto3 session over the fakes of the testing kit, and random calls for comparing the fakes with real engines."""
