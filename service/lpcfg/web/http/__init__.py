"""HTTP itself: connections, bodies, keys, headers, logs and problems."""
