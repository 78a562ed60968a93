"""The testing kit as users' tests use it, with the kit's own fixture `duetime`."""
