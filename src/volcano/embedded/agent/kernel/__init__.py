"""Linux calls made directly: namespaces, mounts, rtnetlink, nftables, terminals. Standard library only."""
