"""Tables that stay in their database."""
