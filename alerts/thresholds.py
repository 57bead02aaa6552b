"""Every number that decides whether somebody is called, with its reason.

How long something has to last stands with each alert; here is how much of it is too much.
"""

from typing import Final

from health.checks.thermal import HELD_DOWN_RATIO
from health.checks.xid import HOUR_SECONDS, REPEATS

# Devices.
# An Xid happens at one moment; a page that is gone before anybody has looked is no page.
XID_SHOWN_SECONDS: Final = 900
# As the health monitor counts them: that many on one GPU within an hour are no longer a program's.
XID_REPEATS: Final = REPEATS
XID_REPEATS_SECONDS: Final = round(HOUR_SECONDS)
# A tenth of the time: short dips under load are what boards do.
SLOWED_RATIO: Final = HELD_DOWN_RATIO
# Degrees below the board's own threshold: what a fan or a neighbour's job can take away.
CLOSE_CELSIUS: Final = 3
# A link is narrower, or slower, for good only if it stays so while the GPU works: idle links sleep.
BUSY_PERCENT: Final = 50
# One a minute. Some at the start of a driver are normal, and none of them loses data.
PCIE_REPLAYS_PER_HOUR: Final = 60

# Sharing.
# The users' own rule: contended for more than this, the oversubscription factor should come down.
CONTENDED_RATIO: Final = 0.15
# Factors of 2, 4 and 8 are in use; beyond, a tenant's turn comes too seldom for serving.
MOST_REPLICAS: Final = 8
# The next allocation of some tenant will fail, and it is not known whose.
SHARED_MEMORY_PERCENT: Final = 90
VGPU_MEMORY_RATIO: Final = 0.95

# Capacity.
# A scale-up with images of tens of gigabytes takes ten minutes.
PENDING_SECONDS: Final = 1800
QUOTA_RATIO: Final = 0.9
# Less than a minute of work in an hour and a half: not a service with little traffic.
IDLE_RATIO: Final = 0.01

# Ourselves.
# Two scrapes of 15 s and a tick are less than this.
STALE_SECONDS: Final = 60
# The kubelet is asked every few seconds.
TENANTS_SECONDS: Final = 300
# Five polls of the monitor at its default interval.
EVIDENCE_SECONDS: Final = 300
REJECTED_PER_HOUR: Final = 10
FAILING_PROBE_RATIO: Final = 0.5
CONNECTED_RATIO: Final = 0.9
ERROR_RATIO: Final = 0.05
# Self-made serving certificates live two weeks and are renewed after one.
CERTIFICATE_SECONDS: Final = 3 * 86_400

# A common cause: more than so many nodes, and so much of the fleet.
UNWELL_NODES: Final = 3
UNWELL_RATIO: Final = 0.1
