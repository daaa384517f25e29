"""What pods of an agent have to themselves: cards and CPUs, recorded before their containers start."""
