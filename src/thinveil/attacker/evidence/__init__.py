"""What answers tell, and when enough was heard."""
