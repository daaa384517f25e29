"""`vcctl top`: jobs, queues and nodes on one screen, with keys; once as plain tables where there is no terminal."""
