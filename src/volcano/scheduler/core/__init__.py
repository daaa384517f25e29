"""Arrays and heaps without policy: nodes as columns, fit, order, and the snapshot that holds them."""
