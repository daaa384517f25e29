"""What `kubectl get` prints: columns and cells of built-in and custom kinds."""
