"""What runs and measures the controllers: metrics, probes."""
