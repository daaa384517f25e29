"""How to place a gang and whom to evict for it: algorithms shared by the actions."""
