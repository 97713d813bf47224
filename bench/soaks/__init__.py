"""Long runs that try to break things: a seeded part of each in the tests, the whole by bench."""
