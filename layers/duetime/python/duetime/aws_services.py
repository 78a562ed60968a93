"""The AWS services that duetime calls, by botocore's names."""

from __future__ import annotations

AWS_SERVICES = frozenset(
    {
        *("apigatewaymanagementapi", "dynamodb", "events", "lambda"),
        *("s3", "secretsmanager", "sns", "sqs", "stepfunctions", "sts"),
        # They run the jobs of tasks.
        *("batch", "codebuild", "ecs", "glue"),
    }
)
"""Their API models are kept in the layer of the dependencies, and no others (`sts` is for roles)."""
