"""The curator behind HTTP (extra: service)."""
