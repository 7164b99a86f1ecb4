"""Entry point of ``python -m prplugin``, the same command as ``prplugin``."""

from prplugin.cli import main

if __name__ == "__main__":
    main(prog_name="prplugin")
