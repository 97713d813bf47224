"""Does the target do what it claims? Asked of its answers alone, beside an attack or by itself."""
