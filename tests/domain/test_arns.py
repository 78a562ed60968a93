from __future__ import annotations

import re

import pytest

from duetime.domain.tasks.targets import ArnPatterns, AwsService, arn_pattern, service_of

EXAMPLES = {
    AwsService.LAMBDA: "arn:aws:lambda:eu-west-1:123456789012:function:report",
    AwsService.SQS: "arn:aws:sqs:eu-west-1:123456789012:reports.fifo",
    AwsService.SNS: "arn:aws-us-gov:sns:us-gov-west-1:123456789012:reports",
    AwsService.EVENTBRIDGE: "arn:aws:events:eu-west-1:123456789012:event-bus/default",
    AwsService.STEP_FUNCTIONS: "arn:aws-cn:states:cn-north-1:123456789012:stateMachine:report",
}


@pytest.mark.parametrize(("service", "arn"), EXAMPLES.items())
def test_an_arn_is_recognized_only_in_the_form_of_its_service(service: AwsService, arn: str) -> None:
    """The ARN forms of each service's resources are recognized."""
    assert service_of(arn) is service
    assert [each for each in AwsService if re.search(arn_pattern(each), arn)] == [service]


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "arn:aws:lambda",
        "arn:aws:lambda:eu-west-1:123456789012:layer:report",
        "arn:aws:lambda:eu-west-1:123456789012:function:report:live:2",
        "arn:aws:lambda:eu-west-1:12345678901:function:report",
        "arn:aws:lambda::123456789012:function:report",
        "arn:aws:lambda:eu-west-1:123456789012:function:*",
        "arn:aws:states:eu-west-1:123456789012:execution:report:one",
        "arn:aws:events:eu-west-1:123456789012:rule/report",
        "arn:aws:s3:eu-west-1:123456789012:reports",
        " arn:aws:sqs:eu-west-1:123456789012:reports",
        "arn:aws:sqs:eu-west-1:123456789012:re ports",
        "arn:aws:sqs:eu-west-1:123456789012:re\x00ports",
    ],
)
def test_an_arn_of_a_resource_that_cannot_be_called_has_no_form(arn: str) -> None:
    """Other resources, patterns, and strings with extra characters around an ARN have no form."""
    assert not any(re.fullmatch(arn_pattern(each), arn) for each in AwsService)


@pytest.mark.parametrize(
    ("pattern", "arn", "is_allowed"),
    [
        ("arn:aws:sqs:eu-west-1:123456789012:reports", "arn:aws:sqs:eu-west-1:123456789012:reports", True),
        ("arn:aws:sqs:eu-west-1:123456789012:reports", "arn:aws:sqs:eu-west-1:123456789012:reports2", False),
        ("arn:aws:sqs:eu-west-1:123456789012:reports-*", "arn:aws:sqs:eu-west-1:123456789012:reports-a.fifo", True),
        ("arn:aws:sqs:eu-west-1:123456789012:reports-?", "arn:aws:sqs:eu-west-1:123456789012:reports-ab", False),
        ("arn:aws:sqs:*:123456789012:reports", "arn:aws:sqs:eu-west-1:123456789012:reports", True),
        ("arn:aws:sqs:*:reports", "arn:aws:sqs:eu-west-1:123456789012:reports", False),
        ("arn:aws:sqs:eu-west-1:123456789012:a.b", "arn:aws:sqs:eu-west-1:123456789012:aXb", False),
        (EXAMPLES[AwsService.LAMBDA], EXAMPLES[AwsService.LAMBDA] + ":live", False),
        (EXAMPLES[AwsService.LAMBDA] + ":*", EXAMPLES[AwsService.LAMBDA] + ":live", True),
        ("arn:aws:lambda:eu-west-1:123456789012:function:*", EXAMPLES[AwsService.LAMBDA] + ":live", True),
    ],
)
def test_a_pattern_allows_only_complete_matches(pattern: str, arn: str, *, is_allowed: bool) -> None:
    """Wildcards match within their own segment, and other characters match themselves."""
    assert ArnPatterns(("arn:aws:sns:eu-west-1:1:x", pattern)).allow(arn) is is_allowed
    assert not ArnPatterns().allow(arn)
