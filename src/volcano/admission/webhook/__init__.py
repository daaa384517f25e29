"""Admission served to a real API server over HTTPS: reviews, certificates, registration."""
