"""CPUs of machines with several NUMA nodes: which of them a pod gets, for the scheduler and the node agent alike."""
