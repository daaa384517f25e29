"""Which pod runs where: cycles over a snapshot of the cluster, and the service that runs them."""
