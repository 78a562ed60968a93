"""Pull workers: leases, reports and locks."""
