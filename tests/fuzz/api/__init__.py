"""Requests made from our own OpenAPI documents by schemathesis, against a running system (`make fuzz-api`)."""
