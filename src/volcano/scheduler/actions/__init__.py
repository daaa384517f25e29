"""What a cycle does, in configured order."""
