"""The Lambda functions of duetime: one folder with one handler for each."""
