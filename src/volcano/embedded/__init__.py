"""A Kubernetes of our own, absent on a real cluster: API server, node agent, and the controllers a cluster has."""
