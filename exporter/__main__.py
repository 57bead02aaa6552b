"""``python -m exporter``: the same as ``slicewatch exporter``."""

import os
import sys

from exporter.main import run

sys.exit(run(sys.argv[1:], os.environ))
