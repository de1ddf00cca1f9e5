"""Write the page of all counter definitions to standard output."""

import sys

from mansard.counters.page import counters_page

if __name__ == "__main__":
    sys.stdout.write(counters_page())
