"""What the server keeps true by itself: its first objects, its own Service, quota status, deleted definitions."""
