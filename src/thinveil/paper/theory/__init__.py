"""The paper's definitions, executable on worlds small enough to enumerate."""
