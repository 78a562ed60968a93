"""The Lambda functions of duetime. Each function has a folder with its handler."""
