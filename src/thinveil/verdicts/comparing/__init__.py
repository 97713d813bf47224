"""Mechanisms side by side: the same attacks, and how risk grows."""
