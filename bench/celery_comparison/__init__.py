"""Compares Celery (on SQS, with DynamoDB as result backend) and duetime on the same embedded AWS; run on demand."""
