"""How much of what was found is right, how sure that is, and what could not be beaten."""
