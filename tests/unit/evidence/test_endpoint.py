"""What may be asked of ``/evidence``, and what is refused."""

import pytest
from aiohttp.test_utils import TestClient, TestServer

from exporter.evidence.endpoint import EvidenceEndpoint
from slicewatch.wire import evidence as wire


class Account:
    """Says which number it was asked with, as the node's name."""

    run = "abc"

    def given(self, after):
        return wire.Evidence(
            node=str(after),
            run=self.run,
            uptime_seconds=1,
            driver=wire.Driver(seconds=1, starts=1),
        )


@pytest.fixture
async def client():
    app = EvidenceEndpoint(Account()).application()
    async with TestClient(TestServer(app)) as made:
        yield made


@pytest.mark.parametrize(
    ("query", "after"),
    [
        ("", "0"),
        ("?after=0", "0"),
        ("?run=abc", "0"),
        ("?after=17&run=abc", "17"),
        ("?after=17&run=other", "0"),
        ("?after=17&run=", "0"),
    ],
)
async def test_a_number_counts_within_the_run_that_gave_it(client, query, after):
    response = await client.get(f"/evidence{query}")
    assert response.content_type == "application/json"
    assert wire.decode(await response.read()).node == after


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("after=-1&run=abc", "after: '-1' is no number of an event; pass 'newest'"),
        ("after=soon&run=abc", "after: 'soon' is no number"),
        ("after=%C2%B2&run=abc", "after: '²' is no number"),
        ("after=99999999999999999999&run=abc", "is no number"),
        ("after=&run=abc", "after: '' is no number"),
        ("after=17", "run: missing"),
        ("since=17", "no parameter 'since'; there are after and run"),
    ],
)
async def test_what_cannot_be_is_refused_with_what_to_write(client, query, said):
    response = await client.get(f"/evidence?{query}")
    assert response.status == 400
    assert said in (await response.json())["error"]


async def test_answers_in_one_file_are_a_recording(client):
    answers = [await (await client.get("/evidence")).read() for _ in range(2)]
    assert [answer.count(b"\n") for answer in answers] == [1, 1]
    assert all(answer.endswith(b"\n") for answer in answers)


async def test_nothing_can_be_done_there(client):
    assert (await client.post("/evidence")).status == 405
    assert (await client.post("/release")).status == 404
