"""Results for people: terminal, JSON, figures."""
