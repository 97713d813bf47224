"""The way to a service: where a token may go, and how much of a reply is read, for how long."""
