"""The cluster as web pages, live, with the rights of each reader."""
