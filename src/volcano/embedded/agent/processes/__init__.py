"""The supervisor and the programs it forks: containers, sandboxes, logs, exec. Standard library only, its client apart."""
