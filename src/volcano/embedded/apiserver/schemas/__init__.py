"""What objects may look like: compiled schemas, strategic merge, server-side apply, tables, and OpenAPI documents.

Everything here is a pure function of plain JSON. The verbs decide when it is called.

`crd`: schemas of custom kinds. `builtin`: decoding and defaults of Kubernetes' own kinds. `apply`: server-side apply
and strategic merge. `cel`: validation rules. `tables`: what `kubectl get` prints. `openapi`: the published documents.
"""
