"""`python -m perfkit`."""

from perfkit.cli.main import main

if __name__ == "__main__":
    main()
