"""A deployed account in virtual time: the unmodified Lambda functions over fakes of the AWS services they call."""
