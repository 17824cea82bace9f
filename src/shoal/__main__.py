"""``python -m shoal``: the program ``shoal``, for when it is not on the path."""

from shoal.app.cli import main

if __name__ == "__main__":
    main()
