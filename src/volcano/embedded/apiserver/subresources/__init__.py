"""The subresources of objects: scale, binding, eviction, token, log and proxy; `dispatch` is their table."""
