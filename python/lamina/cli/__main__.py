"""``python -m lamina.cli``: the driver where its console script is not installed."""

from lamina.cli import main

main()
