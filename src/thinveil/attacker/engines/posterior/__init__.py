"""Searches that carry beliefs from answer to answer, and prove what they find."""
