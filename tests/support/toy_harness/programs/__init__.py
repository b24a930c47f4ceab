"""Programs that misbehave on purpose, for the tests of perfkit/launch."""
