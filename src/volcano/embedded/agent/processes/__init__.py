"""The supervisor and the programs it forks: containers, sandboxes, logs, exec. Standard library only, but its client."""
