"""The kubelet's HTTPS endpoint: logs, exec, attach and port-forward, over WebSocket and SPDY.

The SPDY protocol is in `spdy`. Starting the commands of an exec is the runtime's work.
"""
