"""What an installation on Kubernetes consists of, as objects; printed as manifests, and the source of the chart."""
