"""What is attacked: tables, columns, counts and people."""
