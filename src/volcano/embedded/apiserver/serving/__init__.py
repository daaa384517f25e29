"""HTTPS in front of the server: ASGI, client certificates, limits, and connections that outlive a request."""
