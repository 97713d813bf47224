"""Hostile content for every reader of what comes from outside."""
