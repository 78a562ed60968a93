"""AWS as plain objects: the boto3 calls that duetime makes, without HTTP, as fast as a simulation needs them.

`tests/adapters/test_fakes.py` runs them side by side with the embedded engine: the same calls have the same answers.
"""
