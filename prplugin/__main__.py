"""``python -m prplugin`` is ``prplugin``."""

from prplugin.cli import main

if __name__ == "__main__":
    main(prog_name="prplugin")
