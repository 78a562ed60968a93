"""Fakes of AWS as plain objects: the boto3 calls that duetime makes, without HTTP, fast enough for simulations.

`tests/adapters/test_fakes.py` compares them with the embedded engine: the same calls have the same responses.
"""
