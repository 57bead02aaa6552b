"""``python -m adapter``."""

import os
import sys

from adapter.main import run

sys.exit(run(sys.argv[1:], os.environ))
