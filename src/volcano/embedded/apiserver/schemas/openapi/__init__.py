"""The OpenAPI documents that clients read."""
