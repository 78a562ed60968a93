"""The function behind `Schedule` and `TopologyDefinition`, which handles CloudFormation's custom resources."""
