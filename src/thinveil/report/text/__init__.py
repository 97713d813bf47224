"""Results for people at a terminal, and as plain files."""
