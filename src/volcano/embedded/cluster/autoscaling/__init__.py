"""HorizontalPodAutoscalers: how many replicas a workload should have by what its pods use."""
