"""The contract between the scheduler and its plugins, and one cycle's state."""
