"""Sliding windows: many unknown counts, learned by questions about their sums."""
