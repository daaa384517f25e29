"""Tables that tools/ generates from the published definitions of Kubernetes."""
