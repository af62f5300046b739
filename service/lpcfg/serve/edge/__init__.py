"""Connections: what the server does before HTTP, and to slow clients."""
