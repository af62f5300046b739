"""The shapes of HTTP requests and answers, shared by the service and its clients."""
