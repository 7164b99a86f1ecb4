"""Print what pip resolved, from its report, as constraints for another installation."""

import json
import sys
from pathlib import Path

report = json.loads(Path(sys.argv[1]).read_text())
found = {entry["metadata"]["name"]: entry["metadata"]["version"] for entry in report["install"]}
print(*(f"{name}=={version}" for name, version in sorted(found.items()) if name != "prplugin"), sep="\n")
