"""The paper: its experiments, its figures, its definitions."""
