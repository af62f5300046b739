"""A model as one page of plots that needs nothing else: no other file, no network, no script."""
