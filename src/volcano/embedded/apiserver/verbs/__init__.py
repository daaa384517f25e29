"""The verbs of the API, a file each; `writing` is what create, update and patch share on the way to the store."""
