"""One module for each framework, with its `FRAMEWORK`."""
