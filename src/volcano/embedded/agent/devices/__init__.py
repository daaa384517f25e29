"""The accelerators of this machine: which there are, how they are published, and what makes a container see them."""
