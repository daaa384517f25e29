"""The scheduler under virtual time: workloads and clusters in, figures about a policy out."""
