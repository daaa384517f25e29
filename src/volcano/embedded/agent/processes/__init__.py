"""The supervisor and the programs it forks: containers, sandboxes, logs, exec. Mostly standard library only."""
