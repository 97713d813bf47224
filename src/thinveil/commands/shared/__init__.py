"""What all commands share: options, consoles, files that are written, servers, interruptions."""
