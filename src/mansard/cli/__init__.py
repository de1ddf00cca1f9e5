"""The command line: each command translates its options into one public function."""

import os
import sys

from mansard.errors import MansardError

#: Exit codes. 0: all was done; 2: cannot be used; 3: done, but the input was partial.
PARTIAL = 3
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Every error of ours becomes one line on standard error; anything else is a fault of Mansard
    and keeps its traceback.
    """
    from mansard.cli.app import app

    try:
        app(args=arguments)
    except MansardError as error:
        sys.stderr.write(f"mansard: {' '.join(str(error).split())}\n")
        if error.slug:
            sys.stderr.write(f"         more: docs/messages.md#{error.slug}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("mansard: interrupted\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (mansard ... | head): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
