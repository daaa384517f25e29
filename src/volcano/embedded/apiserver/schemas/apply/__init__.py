"""Server-side apply and strategic merge: who manages which field, and how values merge."""
