"""Pages beside the resources: discovery, OpenAPI, health, metrics, version, access reviews."""
