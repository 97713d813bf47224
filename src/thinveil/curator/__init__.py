"""The side that holds the data. An attacker never imports from here."""
