"""What the server knows of built-in kinds: defaults, validation, addresses, managed fields."""
