"""What is below an object: status, scale, eviction, log, proxy and their like."""
