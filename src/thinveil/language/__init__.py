"""The words that curator and attacker share: what can be asked, answered and claimed."""
