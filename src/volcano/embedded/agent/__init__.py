"""A node agent: registers nodes, runs the pods bound to them as processes or simulates them, reports their status."""
