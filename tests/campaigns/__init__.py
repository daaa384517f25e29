"""Programs that attack a running system for minutes to hours; CI does not run them."""
