"""``python -m health``."""

import os
import sys

from health.main import run

sys.exit(run(sys.argv[1:], os.environ))
