"""The embedded Kubernetes API server: requests in, objects in a log, changes out to watchers."""
