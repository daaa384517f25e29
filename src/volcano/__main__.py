"""`python -m volcano` and the `volcano` command."""

from volcano.app.main import main

if __name__ == "__main__":
    main()
