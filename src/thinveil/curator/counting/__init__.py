"""How many records satisfy each predicate of a batch."""
