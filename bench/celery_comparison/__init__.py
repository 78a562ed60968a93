"""Celery on SQS with DynamoDB as its result backend, against duetime on the same embedded AWS: on demand."""
