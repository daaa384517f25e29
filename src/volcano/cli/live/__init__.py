"""What `volcano run` and `volcano up` show while they run: submitting manifests, following jobs, a line per change."""
