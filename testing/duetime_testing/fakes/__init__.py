"""Fakes of AWS services for fast simulations: plain objects with the boto3 calls that duetime makes, without HTTP.

`tests/adapters/test_fakes.py` checks that the fakes and the embedded AWS respond alike to the same calls.
"""
