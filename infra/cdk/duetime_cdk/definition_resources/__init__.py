"""The function behind `Schedule` and `TopologyDefinition`: a custom resource of CloudFormation."""
