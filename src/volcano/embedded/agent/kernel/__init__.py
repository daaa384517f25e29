"""Direct Linux calls: namespaces, mounts, rtnetlink, nftables, terminals. Standard library only.

The supervisor imports this, so it must stay small. Nothing here knows of pods.
"""
