"""Text files: what their bytes and first lines show, where nobody says it."""
