"""Pod Security admission: the levels privileged, baseline and restricted of Kubernetes' Pod Security Standards."""
