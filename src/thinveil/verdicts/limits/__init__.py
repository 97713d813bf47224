"""Limits: how much one answer tells, how short a table can be said, how few questions there are."""
