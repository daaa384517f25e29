"""What a container is given: environment, command line, image mapping, and the settings of process pods."""
