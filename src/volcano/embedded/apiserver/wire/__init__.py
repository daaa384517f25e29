"""Requests and responses as they are on the wire: URLs, media types, protobuf bodies, outbound requests."""
