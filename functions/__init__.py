"""The doors of duetime: one folder a Lambda function, one handler each."""
