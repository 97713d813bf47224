"""Ways of finding counts and values."""
