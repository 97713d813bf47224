"""The window in the wall: the only place where curator and attacker meet."""
