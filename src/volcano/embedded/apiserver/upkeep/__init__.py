"""What the server maintains by itself: its first objects, its own Service, quota status, deleted definitions."""
