"""From files and frames to coded tables."""
