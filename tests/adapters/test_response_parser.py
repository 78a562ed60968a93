"""Compares the parser for DynamoDB responses with botocore's parser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.parsers import ResponseParserFactory

from duetime.adapters.aws_clients import Clients
from duetime.adapters.dynamodb.response_parser import AttributeParser, AttributeParserFactory

if TYPE_CHECKING:
    from collections.abc import Mapping

_ITEM = {
    "text": {"S": "x"},
    "number": {"N": "1.5"},
    "bytes": {"B": "AAEC"},
    "truth": {"BOOL": False},
    "nothing": {"NULL": True},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "many bytes": {"BS": ["AAEC", ""]},
    "list": {"L": [{"B": "AAEC"}, {"L": []}, {"M": {"deep": {"B": ""}}}]},
    "map": {"M": {"B": {"B": "AAEC"}, "S": {"S": ""}}},
}
_CONSUMED = {"TableName": "t", "CapacityUnits": 1.5}
_RESPONSES: list[tuple[str, str, int, Mapping[str, Any]]] = [
    ("dynamodb", "GetItem", 200, {"Item": _ITEM, "ConsumedCapacity": _CONSUMED}),
    ("dynamodb", "GetItem", 200, {}),
    ("dynamodb", "Query", 200, {"Items": [_ITEM, {}], "Count": 2, "LastEvaluatedKey": {"pk": {"S": "x"}}}),
    ("dynamodb", "UpdateItem", 200, {"Attributes": _ITEM}),
    (
        "dynamodb",
        "BatchGetItem",
        200,
        {"Responses": {"t": [_ITEM]}, "UnprocessedKeys": {"t": {"Keys": [{"pk": {"B": "AAEC"}}]}}},
    ),
    (
        "dynamodb",
        "UpdateItem",
        400,
        {"__type": "com.amazonaws#ConditionalCheckFailedException", "message": "no", "Item": _ITEM},
    ),
    (
        "dynamodb",
        "TransactWriteItems",
        400,
        {
            "__type": "com.amazonaws#TransactionCanceledException",
            "CancellationReasons": [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": _ITEM}],
        },
    ),
    ("sqs", "ReceiveMessage", 200, {"Messages": [{"Body": "x", "Attributes": {"SentTimestamp": "1"}}]}),
    ("stepfunctions", "DescribeExecution", 200, {"executionArn": "x", "startDate": 1.5}),
]


@pytest.mark.parametrize(("service", "operation", "status", "body"), _RESPONSES)
def test_responses_are_parsed_as_by_botocore(
    service: str, operation: str, status: int, body: Mapping[str, Any]
) -> None:
    """Both parsers agree on all attribute types in items, keys and failed conditions, and for other services."""
    model: Any = botocore.session.get_session().get_service_model(service)
    failed = body.get("__type", "").partition("#")[2]
    shape = model.shape_for_error_code(failed) if failed else model.operation_model(operation).output_shape
    response: Any = {"body": json.dumps(body).encode(), "headers": {}, "status_code": status}
    usual, ours = (
        factory.create_parser(model.metadata["protocol"]).parse(response, shape)
        for factory in (ResponseParserFactory(), AttributeParserFactory())
    )
    assert ours == usual


def test_clients_of_functions_use_the_fast_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions' clients use this parser and not botocore's XML parsers."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    clients: Any = Clients()
    assert isinstance(_parser_of(clients.dynamodb()), AttributeParser)
    assert not isinstance(_parser_of(clients.s3()), AttributeParser)


def _parser_of(client: Any) -> object:  # noqa: ANN401 - its endpoint is not in its type
    return client._endpoint._response_parser_factory.create_parser(client.meta.service_model.metadata["protocol"])
