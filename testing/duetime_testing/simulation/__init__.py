"""Simulates a deployed account in virtual time: runs the unmodified Lambda functions over fakes of AWS services."""
