"""Work off the event loop: admission, threads and the cache of answers."""
