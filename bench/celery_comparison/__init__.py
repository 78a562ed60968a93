"""Celery on SQS with DynamoDB as its result backend, compared with duetime on the same embedded AWS; run on demand."""
