"""Reports versions, licenses and known vulnerabilities of the deployed packages: `make sbom` and `make audit`."""
