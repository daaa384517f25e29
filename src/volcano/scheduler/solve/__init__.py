"""How to place a gang, and which tasks to evict for it: algorithms shared by the actions."""
