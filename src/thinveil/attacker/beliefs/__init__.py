"""What is likely of counts and values, before and while asking."""
