"""The live page: an attack that a room can watch."""
