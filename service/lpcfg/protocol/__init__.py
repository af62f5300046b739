"""The HTTP shapes, shared by the service and its clients."""
