"""The HTTP layer: connections, bodies, keys, headers, logs and problems."""
