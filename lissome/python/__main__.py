"""`python -m lissome`: the program."""

from lissome.program import main

main()
