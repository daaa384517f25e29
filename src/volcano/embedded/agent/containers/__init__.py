"""What a container starts with: environment, command line, image mapping; and the settings of the process runtime.

Pure. Volumes are in `storage`, the start itself in `runtime` and `processes`.
"""
