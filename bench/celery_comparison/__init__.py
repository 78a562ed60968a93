"""Compares Celery (on SQS, with DynamoDB as the result backend) and duetime on the embedded AWS; run only on demand."""
