"""SPDY/3.1, the server's side: frames, connections, channels, port forwarding."""
