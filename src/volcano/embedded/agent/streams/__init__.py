"""The kubelet's HTTPS endpoint: logs, exec, attach, port-forward over WebSocket and SPDY."""
