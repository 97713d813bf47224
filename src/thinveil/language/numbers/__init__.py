"""Numbers as files write them: their digits, and whole numbers that stand for doubles."""
