"""How questions, answers and public facts travel between programs."""
