"""What may happen to a small cluster, one thing after the other, and what has to be so at the end.

What monitors may never do is held against each of their writes by
``testbed.health_fleet.watched_kube``; here is what takes a view of the whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from health import names
from health.checks.model import Action, Condition
from health.settings import HealthSettings
from testbed.health_fleet.ailments import BY_NAME
from testbed.health_fleet.clusters import Cluster
from testbed.health_fleet.watched_kube import Body, HarmError, Trouble

NODES: Final = 3
GPUS: Final = 2
GOOD_POLLS: Final = 5
# Until what was told is too old to be looked at, and all that was found has been gone for an hour.
ROUNDS_TO_FORGET: Final = 18
ROUNDS_OF_AN_HOUR: Final = 66

Timeline = Iterable[tuple[tuple[str, tuple[Any, ...]], int]]
"""Names of methods of a ``Story`` with their arguments, and how many turns pass after each."""


class Story:
    """A cluster to which things happen.

    Args:
        kernel_log: whether exporters read the kernel's log.
        chosen: of the monitors' settings.

    Attributes:
        failed: nodes that had a fault that warrants a cordon, however briefly.
    """

    def __init__(self, *, kernel_log: bool = False, **chosen: Any) -> None:  # noqa: ANN401 - of the settings
        usual = HealthSettings(node_name="any", budget_percent=100, good_polls=GOOD_POLLS)
        self.cluster = Cluster(NODES, GPUS, replace(usual, **chosen), kernel_log=kernel_log)
        self.failed: set[str] = set()
        self._overruled: set[int] = set()
        self._asleep: set[int] = set()

    async def live(self, timeline: Timeline) -> None:
        """Let everything happen."""
        await self.cluster.set_up()
        await self.cluster.pause(paused=False)
        for (what, arguments), turns in timeline:
            await getattr(self, what)(*arguments)
            await self.turns(turns)

    async def turns(self, count: int) -> None:
        """Let so many turns pass."""
        for _ in range(count):
            released = len(self.cluster.kube.uncordons)
            await self.cluster.turn(frozenset(self._asleep))
            for name in self.cluster.kube.uncordons[released:]:
                self._look_at_release(int(name.removeprefix("node-")))
            _hold(set(self.cluster.kube.cordons) <= self.failed, "a cordon for noise")

    async def end_with_help(self) -> None:
        """Let all that is wrong stop, and a human have what was found forgotten."""
        await self._calm_down()
        await self.turns(ROUNDS_TO_FORGET)
        for number in range(NODES):
            await self.cluster.annotate(number, clear="true")
        await self._end_well(GOOD_POLLS + 3)

    async def end_alone(self) -> None:
        """Let all that is wrong stop with a boot of each machine, and do nothing else."""
        await self._calm_down()
        for number in range(NODES):
            await self.boot(number, 10, 10, 10)
        await self._end_well(ROUNDS_TO_FORGET + ROUNDS_OF_AN_HOUR)

    async def fall_ill(self, number: int, index: int, name: str) -> None:
        """Let something befall a GPU."""
        ailment = BY_NAME[name]
        self.cluster.machines[number].fall_ill(index, ailment)
        if ailment.is_fault and ailment.asks is Action.CORDON:
            self.failed.add(self.cluster.machines[number].name)

    async def recover(self, number: int, index: int) -> None:
        """Let a GPU be well."""
        self.cluster.machines[number].recover(index)

    async def boot(self, number: int, down: float, driver: float, training: float) -> None:
        """Boot a machine, and its monitor with it."""
        self.cluster.machines[number].boot(down=down, driver=driver, training=training)
        self.cluster.wardens[number].begin_anew()

    async def reload_driver(self, number: int, why: str, seconds: float) -> None:
        """Replace the driver."""
        machine = self.cluster.machines[number]
        machine.reload_driver(why=why, seconds=seconds, training=seconds)

    async def restart_exporter(self, number: int, silent: float) -> None:
        """Begin another life of the exporter."""
        self.cluster.machines[number].restart_exporter(silent=silent)

    async def fall_silent(self, number: int, seconds: float) -> None:
        """Let the exporter not answer for a while."""
        self.cluster.machines[number].fall_silent(seconds)

    async def replace_board(self, number: int, index: int) -> None:
        """Put another board in."""
        self.cluster.machines[number].replace(index, 1)
        await self.boot(number, 20, 20, 60)

    async def restart_monitor(self, number: int) -> None:
        """Begin another life of the monitor."""
        self.cluster.wardens[number].begin_anew()

    async def sleep(self, number: int, asleep: bool) -> None:
        """Let a monitor not run, or run again."""
        (self._asleep.add if asleep else self._asleep.discard)(number)

    async def pass_time(self, seconds: float) -> None:
        """Let no monitor take a turn for a while."""
        self.cluster.now += seconds

    async def cordon(self, number: int, unschedulable: bool) -> None:
        """Let a human cordon or uncordon a node."""
        self._overruled.add(number)
        await self.cluster.cordon(number, unschedulable)

    async def say(self, number: int, hold: str | None, clear: str | None) -> None:
        """Let a human tell a monitor something."""
        await self.cluster.annotate(number, hold=hold, clear=clear)

    async def pause(self, paused: bool, allow: str) -> None:
        """Let a human pause new cordons, or let them go on."""
        await self.cluster.pause(paused=paused, allow=allow)

    async def report(self, number: int) -> None:
        """Let others write to a node."""
        await self.cluster.report(number)

    async def replace_node(self, number: int, survives: bool) -> None:
        """Let a node be deleted and made anew; its monitor may not notice."""
        await self.cluster.replace(number)
        if not survives:
            self.cluster.wardens[number].begin_anew()

    async def trouble(self, troubles: Sequence[Trouble]) -> None:
        """Let the next requests of monitors fail."""
        if Trouble.HUMAN_FIRST in troubles:
            self._overruled |= set(range(NODES))
        self.cluster.kube.troubles.extend(troubles)

    async def _calm_down(self) -> None:
        cluster = self.cluster
        cluster.kube.calm_down()
        self._asleep.clear()
        for number, machine in enumerate(cluster.machines):
            for index in range(GPUS):
                machine.recover(index)
            await cluster.annotate(number)
        await cluster.pause(paused=False, allow="all")

    async def _end_well(self, turns: int) -> None:
        """Let turns pass, and hold what is then against what monitors promise."""
        theirs = [self._is_theirs(number) for number in range(NODES)]
        await self.turns(turns)
        _hold(await self.cluster.slots() == set(), "slots that are left over")
        for number, warden in enumerate(self.cluster.wardens):
            body = self._body(number)
            said = {one["type"]: one["status"] for one in body["status"]["conditions"]}
            known = {condition: said.get(condition) for condition in Condition}
            _hold(warden.fault() is None, f"a turn without an end: {warden.fault()}")
            _hold(not _is_marked(body), "a mark that is left over")
            _hold(_is_cordoned(body) == theirs[number], "a human's cordon gone, or ours left over")
            _hold(not any(one["key"] == names.TAINT for one in body["spec"]["taints"]), "a taint")
            _hold(known == dict.fromkeys(Condition, "False"), f"conditions that stay: {known}")

    def _look_at_release(self, number: int) -> None:
        """Hold against a release that anybody could see the fault."""
        # What befell the same GPU later may hide it, as it may in truth.
        latest = [
            board.ailing[-1][1] for board in self.cluster.machines[number].boards if board.ailing
        ]
        evident = [one.name for one in latest if one.is_evident]
        is_overruled = number in self._overruled
        _hold(is_overruled or not evident, f"a release with {evident}")

    def _is_theirs(self, number: int) -> bool:
        """Tell whether a node is cordoned, and not by its monitor."""
        body = self._body(number)
        return _is_cordoned(body) and not _is_marked(body)

    def _body(self, number: int) -> Body:
        return self.cluster.kube.body(self.cluster.machines[number].name)


def _is_cordoned(body: Body) -> bool:
    return bool(body["spec"].get("unschedulable"))


def _is_marked(body: Body) -> bool:
    return names.CORDONED in body["metadata"]["annotations"]


def _hold(rule: bool, harm: str) -> None:
    if not rule:
        raise HarmError(harm)
