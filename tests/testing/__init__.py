"""The testing kit, as users' tests use it: the fixture `duetime` is the kit's own."""
