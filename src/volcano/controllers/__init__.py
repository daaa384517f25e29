"""What should exist: each controller compares the World with what an object asks for and returns a Plan. Pure."""
