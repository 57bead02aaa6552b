"""The adapter on a cluster of five hundred nodes: every node's values, all the time, in bounds.

The whole curve up to 5,000 nodes is the bench's, `python -m bench --only scale`.
"""

from pathlib import Path

import pytest

from bench import scale

NODES = 500
SECONDS = 10.0


@pytest.mark.timeout(300)
async def test_five_hundred_nodes_are_followed_by_less_than_a_core_and_a_fifth_of_a_gigabyte(
    tmp_path: Path,
) -> None:
    """Whoever asks for a pool that has no values, or fewer than its pods, fails the measurement."""
    found = await scale.of_size(NODES, tmp_path, seconds=SECONDS)
    assert len(found.asked.seconds) == SECONDS * scale.REQUESTS_PER_SECOND
    assert found.cores < 1.0
    assert found.resident < 200.0
