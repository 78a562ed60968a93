"""The AWS services that duetime calls, by botocore's names."""

from __future__ import annotations

AWS_SERVICES = frozenset(
    {
        *("apigatewaymanagementapi", "dynamodb", "events", "lambda", "logs"),
        *("s3", "secretsmanager", "sns", "sqs", "ssm", "stepfunctions", "sts"),
        # Services that run the jobs of tasks.
        *("batch", "codebuild", "ecs", "glue"),
    }
)
"""The dependency layer contains the API models of these services only.

`sts` is for roles, `ssm` for the secrets of handlers.
"""
