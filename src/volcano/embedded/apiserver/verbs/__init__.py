"""The verbs of the API, a file each; `writing` is the road to the store that create, update and patch share."""
