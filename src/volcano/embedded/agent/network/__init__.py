"""Addresses and names of pods, and how they reach each other and the API server."""
