"""How this program was called, for lines that a reader may copy."""

import shlex
import shutil
import sys
from pathlib import Path

NAME = "mansard"


def called_as() -> str:
    """``mansard`` where the shell finds it, else the path or the module that was called."""
    if shutil.which(NAME):
        return NAME
    called = Path(sys.argv[0])
    if called.name == NAME and called.is_file():
        return shlex.quote(str(called))
    return f"{shlex.quote(sys.executable)} -m {NAME}"
