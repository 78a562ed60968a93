"""The pytest plugin: the fixture `duetime`."""
