"""Kinds of files: how each is recognised, the one reader of each, and words for all others."""
