"""What is deployed, with versions, licences and known vulnerabilities: `make sbom` and `make audit`."""
