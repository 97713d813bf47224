"""The side that asks. Imports the language and itself, nothing else."""
