"""Change sets of CloudFormation stacks. This module requires botocore (the extra `aws`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ABSENT = frozenset({"ChangeSetNotFound", "ChangeSetNotFoundException"})


class ChangeSetUnreadable(ClientError):
    """A change set cannot be read."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the change set {name} cannot be read: {reason}")


class ChangeSets:
    """The change sets of one stack, in the account and region of the environment."""

    def __init__(self, stack: str) -> None:
        self._stack = stack

    def describe(self, name: str) -> list[Mapping[str, Any]]:
        """The pages of `DescribeChangeSet`; empty if the change set does not exist.

        Raises:
            ChangeSetUnreadable: the change set cannot be read.
        """
        try:
            return list(self._pages(name))
        except ModuleNotFoundError:
            raise ChangeSetUnreadable(name, 'botocore is not installed: pip install "duetime-client[aws]"') from None

    def delete(self, name: str) -> None:
        """Delete a change set that was not executed."""
        self._client().delete_change_set(StackName=self._stack, ChangeSetName=name)

    def _pages(self, name: str) -> Iterator[Mapping[str, Any]]:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - an extra, and slow to import
        from botocore.exceptions import ClientError as Rejected  # noqa: PLC0415 - same

        request = {"StackName": self._stack, "ChangeSetName": name}
        client = self._client()
        while True:
            try:
                page = client.describe_change_set(**request)
            except Rejected as error:
                if error.response["Error"]["Code"] in _ABSENT:
                    return
                raise ChangeSetUnreadable(name, str(error)) from error
            except BotoCoreError as error:
                raise ChangeSetUnreadable(name, str(error)) from error
            yield page
            if not page.get("NextToken"):
                return
            request["NextToken"] = page["NextToken"]

    def _client(self) -> Any:  # noqa: ANN401 - botocore makes its clients' classes when it runs
        import botocore.session  # noqa: PLC0415 - same

        return botocore.session.get_session().create_client("cloudformation")
