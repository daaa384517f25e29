"""The Node objects of an agent: their settings, capacity, registration and heartbeat."""
