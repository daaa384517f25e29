"""What runs pods: the contract, processes, and simulated pods; hooks and probes."""
