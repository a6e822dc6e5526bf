"""`python -m experiments NAME`, from the folder that holds `experiments`."""

from experiments.commands import main

if __name__ == "__main__":
    main()
