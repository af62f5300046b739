"""The endpoints: read requests, start the work, write answers."""
