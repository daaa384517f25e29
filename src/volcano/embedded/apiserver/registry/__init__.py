"""Which resources are served, and finding and watching their objects."""
