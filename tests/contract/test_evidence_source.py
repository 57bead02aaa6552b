"""The seam between monitor and exporter: the fake, and a Unix socket with the fake behind it."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from health import source
from health.source import Cursor, ExporterSocket, FakeExporter, Silence, SilenceError
from slicewatch.wire.evidence import Driver, Event, Evidence, Happening, encode

KEPT = 4


def xid(number):
    return Event(number=0, kind=Happening.XID, age_seconds=1, gpu="GPU-1", data=number)


def exporter():
    state = Evidence(
        node="n", run="first", boot_id="b", uptime_seconds=500, driver=Driver(seconds=1, starts=1)
    )
    return FakeExporter(state, kept=KEPT)


def application(fake):
    async def evidence(request):
        cursor = Cursor(
            run=request.query.get("run", ""), newest=int(request.query.get("after", "0"))
        )
        return web.Response(body=encode(fake.answer(cursor)), content_type="application/json")

    app = web.Application()
    app.router.add_get("/evidence", evidence)
    return app


async def listen(stack, app, path):
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.UnixSite(runner, str(path)).start()


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(params=["socket", "fake"])
async def pair(request, stack, tmp_path):
    """Return a source, and the exporter behind it."""
    fake = exporter()
    if request.param == "fake":
        return fake, fake
    path = tmp_path / "evidence.sock"
    await listen(stack, application(fake), path)
    return await stack.enter_async_context(source.exporter_socket(str(path))), fake


def numbers(evidence):
    return [event.data for event in evidence.events]


class TestEvery:
    async def test_source_answers_the_state_as_it_is(self, pair):
        asked, fake = pair
        assert await asked.ask(Cursor()) == fake.state

    async def test_event_is_told_once_to_who_goes_on_from_the_last_answer(self, pair):
        asked, fake = pair
        fake.happen(xid(31), xid(79))
        first = await asked.ask(Cursor())
        fake.happen(xid(48))
        second = await asked.ask(Cursor.after(first))
        third = await asked.ask(Cursor.after(second))
        assert [numbers(e) for e in (first, second, third)] == [[31, 79], [48], []]

    async def test_exporter_that_started_anew_tells_all_that_it_knows(self, pair):
        asked, fake = pair
        fake.happen(xid(31), xid(43))
        cursor = Cursor.after(await asked.ask(Cursor()))
        fake.restart("second")
        fake.happen(xid(79))
        heard = await asked.ask(cursor)
        assert (heard.run, numbers(heard), heard.missed) == ("second", [79], 0)

    async def test_event_that_was_dropped_is_counted_as_missed(self, pair):
        asked, fake = pair
        fake.happen(xid(1))
        cursor = Cursor.after(await asked.ask(Cursor()))
        fake.happen(*(xid(number) for number in range(2, 9)))
        heard = await asked.ask(cursor)
        assert (numbers(heard), heard.missed) == ([5, 6, 7, 8], 3)


async def test_the_fake_is_silent_as_often_as_it_was_told_to():
    fake = exporter()
    fake.fail_next(Silence.TIMEOUT, 2)
    for _ in range(2):
        with pytest.raises(SilenceError) as silence:
            await fake.ask(Cursor())
        assert silence.value.why is Silence.TIMEOUT
    assert await fake.ask(Cursor()) == fake.state


class TestSocket:
    async def silence(self, path, **options):
        async with source.exporter_socket(str(path), **options) as asked:
            with pytest.raises(SilenceError) as silence:
                await asked.ask(Cursor())
        return silence.value

    async def answering(self, stack, path, answer):
        app = web.Application()
        app.router.add_get("/evidence", answer)
        await listen(stack, app, path)

    async def test_that_is_missing_says_what_may_be_the_cause(self, tmp_path):
        silence = await self.silence(tmp_path / "none.sock")
        assert silence.why is Silence.NO_SOCKET
        assert "the exporter is not running" in str(silence)

    async def test_that_nobody_listens_on_any_more_refuses(self, tmp_path):
        path = tmp_path / "left.sock"
        async with AsyncExitStack() as life:
            await listen(life, application(exporter()), path)
            path.rename(tmp_path / "moved.sock")
        silence = await self.silence(tmp_path / "moved.sock")
        assert silence.why in {Silence.REFUSED, Silence.NO_SOCKET}

    async def test_that_does_not_answer_is_given_up(self, stack, tmp_path):
        async def never(_):
            await asyncio.Event().wait()

        path = tmp_path / "hung.sock"
        await self.answering(stack, path, never)
        silence = await self.silence(path, seconds=0.1)
        assert silence.why is Silence.TIMEOUT
        assert "within 0.1 s" in str(silence)

    async def test_that_refuses_is_quoted(self, stack, tmp_path):
        async def refuse(_):
            return web.Response(status=400, text="no parameter 'after'")

        path = tmp_path / "refusing.sock"
        await self.answering(stack, path, refuse)
        silence = await self.silence(path)
        assert silence.why is Silence.STATUS
        assert "400: no parameter 'after'" in str(silence)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b"", "not what /evidence answers"),
            (b'{"version":2}', "version 2 of /evidence"),
            (b'{"version":1,"node":"n"}', "not what /evidence answers"),
            (b"[" * 100_000, "not what /evidence answers"),
            (b"\xff\xfe", "not what /evidence answers"),
        ],
        ids=["empty", "another version", "half", "deep", "no text"],
    )
    async def test_with_another_answer_is_malformed(self, body, said, stack, tmp_path):
        async def other(_):
            return web.Response(body=body)

        path = tmp_path / "other.sock"
        await self.answering(stack, path, other)
        silence = await self.silence(path)
        assert silence.why is Silence.MALFORMED
        assert said in str(silence)

    async def test_with_an_endless_answer_is_cut_off(self, stack, tmp_path, monkeypatch):
        monkeypatch.setattr(source, "LONGEST_ANSWER_BYTES", 1000)

        async def endless(request):
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b" " * 500)

        path = tmp_path / "endless.sock"
        await self.answering(stack, path, endless)
        assert (await self.silence(path)).why is Silence.MALFORMED

    async def test_of_a_successor_is_asked_from_the_next_poll_on(self, stack, tmp_path):
        """While the DaemonSet is updated, two exporters run and the path is the newer one's."""
        path = tmp_path / "evidence.sock"
        old, new = exporter(), exporter()
        new.restart("second")
        await listen(stack, application(old), path)
        asked: ExporterSocket = await stack.enter_async_context(source.exporter_socket(str(path)))
        assert (await asked.ask(Cursor())).run == "first"
        path.unlink()
        await listen(stack, application(new), path)
        assert (await asked.ask(Cursor())).run == "second"
