"""The revisioned log of objects: the contract, in memory, and in SQLite."""
