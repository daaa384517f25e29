"""The OpenAPI documents that clients ask for."""
