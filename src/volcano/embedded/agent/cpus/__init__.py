"""The CPUs of this machine: its NUMA nodes, which pods have CPUs of their own, and the Numatopology that says so."""
