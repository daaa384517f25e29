"""The node agent: registers nodes, runs the pods bound to them as processes or simulates them, reports their status.

`agent` connects the parts: `lifecycle` decides (pure), `runtime` carries out, `status_writer` reports. `processes` is
the supervisor, a program of its own; `kernel` the Linux calls; `containers`, `storage` and `network` what a container
gets; `streams` the kubelet endpoint; `node` the Node objects. What kube-controller-manager does is in embedded/cluster.
"""
