"""What each Xid means, and how much of a reason it is to take a GPU out of service.

An Xid is the driver's number for something that went wrong; most are the program's own doing. The
numbers and what NVIDIA says to do at first are those of its catalogue of 2025-09 and, from 173 on,
of the header of driver 595, which names no action; the tiers are ours. Numbers that are not here
are unused on boards since Ampere, or newer than this table: no reason to act by themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto
from types import MappingProxyType
from typing import Final


class Tier(StrEnum):
    """How an Xid is taken; the value is the letter in the reference.

    RECORD: seen and counted. REPEAT: the same, unless it comes again and again on one GPU. WARN:
    something is not right. RESET: the GPU heals itself with its next reset, running work goes on.
    LINK: of an NVLink, whose state decides. CORDON: no new work for this GPU, unless the driver
    says that nothing has to be done. TOLD: the driver itself says what has to be done.
    """

    RECORD = "I"
    REPEAT = "R"
    WARN = "W"
    RESET = "P"
    LINK = "L"
    CORDON = "C"
    TOLD = "T"


class Remedy(StrEnum):
    """What NVIDIA's catalogue says to do at first. UNUSED: the catalogue has the number no more."""

    NOTHING = "nothing"
    RESTART_APPLICATION = "restart the application"
    RESET_GPU = "reset the GPU"
    RESTART_VM = "restart the virtual machine"
    REBOOT_NODE = "reboot the node"
    CHECK_SEATING = "check seating and cables"
    CHECK_UVM = "check the unified memory driver"
    UPDATE_SOFTWARE = "update the software"
    FOLLOW_WORKFLOW = "follow its workflow"
    CONTACT_SUPPORT = "contact support"
    UNUSED = "unused"
    NOT_STATED = "not stated"


class Cause(StrEnum):
    """What an Xid is usually caused by."""

    APPLICATION = "application"
    DRIVER = "driver"
    FIRMWARE = "firmware"
    MEMORY = "memory"
    HARDWARE = "hardware"
    LINK = "link"
    BUS = "bus"
    POWER = "power"
    INFOROM = "InfoROM"
    SECURITY = "security"
    SYMPTOM = "symptom"
    TEST = "test"


class Boards(Flag):
    """The columns of the catalogue; GRACE is Blackwell beside a Grace CPU, as in GB200."""

    AMPERE = auto()
    HOPPER = auto()
    BLACKWELL = auto()
    GRACE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class XidFact:
    """One number.

    Attributes:
        meaning: in a few words, without an end.
        boards: that can report it by the catalogue; empty where it lists none.
    """

    number: int
    tier: Tier
    cause: Cause
    remedy: Remedy
    meaning: str
    boards: Boards


class Subsystem(Enum):
    """The unit of NVLink 5 that an Xid of 144 to 150 is about.

    The kernel's text says Fatal or Nonfatal. ``resets``: among its fatal ones are some for which
    the catalogue has the GPU reset; more than half of all rows are to be ignored.
    """

    SAW = 144, True
    RLW = 145, True
    TLW = 146, True
    TREX = 147, False
    NVLPW_CTRL = 148, False
    NETIR = 149, True
    MSE = 150, True

    def __init__(self, number: int, resets: bool) -> None:
        self.number = number
        self.resets = resets


SUBSYSTEMS: Final[Mapping[int, Subsystem]] = MappingProxyType({
    subsystem.number: subsystem for subsystem in Subsystem
})  # fmt: skip
RECOVERY_CHANGED: Final = 154
# The one cancels the other.
SMOOTHING_ON, SMOOTHING_OFF = 162, 163
UNCORRECTABLE, UNCORRECTABLE_DETAILS = 48, frozenset({171, 172})

_ALL: Final = Boards.AMPERE | Boards.HOPPER | Boards.BLACKWELL | Boards.GRACE
_NONE: Final = Boards(0)
_A: Final = Boards.AMPERE
_H: Final = Boards.HOPPER
_G: Final = Boards.GRACE
_AH: Final = Boards.AMPERE | Boards.HOPPER
_BG: Final = Boards.BLACKWELL | Boards.GRACE
_HBG: Final = Boards.HOPPER | _BG
_AHB: Final = _AH | Boards.BLACKWELL

_Row = tuple[int, Tier, Cause, Remedy, str, Boards]

_APPLICATION: Final[tuple[_Row, ...]] = (
    (11, Tier.RECORD, Cause.APPLICATION, Remedy.RESTART_APPLICATION, "bad push buffer", _ALL),
    (13, Tier.REPEAT, Cause.APPLICATION, Remedy.RESTART_APPLICATION, "exception of the compute engine, usually an illegal access", _ALL),
    (14, Tier.RECORD, Cause.TEST, Remedy.NOTHING, "error injected for a test", _ALL),
    (25, Tier.RECORD, Cause.APPLICATION, Remedy.RESTART_APPLICATION, "illegal push buffer stream", _ALL),
    (31, Tier.REPEAT, Cause.APPLICATION, Remedy.RESTART_APPLICATION, "access to an illegal address", _ALL),
    (43, Tier.RECORD, Cause.APPLICATION, Remedy.NOTHING, "channel reset after a fault of the program", _ALL),
    (45, Tier.RECORD, Cause.SYMPTOM, Remedy.FOLLOW_WORKFLOW, "channel removed, as after a kill or another Xid", _ALL),
    (106, Tier.RECORD, Cause.TEST, Remedy.NOTHING, "test message", _ALL),
    (107, Tier.RECORD, Cause.TEST, Remedy.NOTHING, "test message", _ALL),
    (108, Tier.RECORD, Cause.APPLICATION, Remedy.UNUSED, "translation error of a remote NVLink access", _ALL),
    (137, Tier.RECORD, Cause.APPLICATION, Remedy.NOTHING, "a remote GPU refused an access over NVLink", _ALL),
    (141, Tier.RECORD, Cause.APPLICATION, Remedy.NOTHING, "error of CUDA's fast path", _HBG),
    (174, Tier.RECORD, Cause.SYMPTOM, Remedy.NOT_STATED, "process ended on a channel that was reset", _NONE),
)  # fmt: skip
_DRIVER: Final[tuple[_Row, ...]] = (
    (8, Tier.WARN, Cause.DRIVER, Remedy.RESTART_APPLICATION, "a channel is idle for too long: the GPU stopped working on it", _ALL),
    (37, Tier.RECORD, Cause.DRIVER, Remedy.NOTHING, "method that the context switch firmware does not have", _ALL),
    (38, Tier.WARN, Cause.FIRMWARE, Remedy.NOTHING, "watchdog of the context switch firmware", _ALL),
    (44, Tier.WARN, Cause.DRIVER, Remedy.NOTHING, "fault during a context switch", _ALL),
    (60, Tier.RECORD, Cause.DRIVER, Remedy.RESTART_APPLICATION, "exception of the security processor", _ALL),
    (61, Tier.WARN, Cause.FIRMWARE, Remedy.UNUSED, "breakpoint in the power management unit", _NONE),
    (65, Tier.RECORD, Cause.DRIVER, Remedy.UNUSED, "error of video encoder 1", _NONE),
    (66, Tier.RECORD, Cause.DRIVER, Remedy.NOTHING, "illegal register access by the driver", _ALL),
    (67, Tier.RECORD, Cause.DRIVER, Remedy.NOTHING, "illegal access by the driver", _ALL),
    (68, Tier.RECORD, Cause.DRIVER, Remedy.RESTART_APPLICATION, "exception of video decoder 0", _ALL),
    (69, Tier.WARN, Cause.DRIVER, Remedy.RESTART_APPLICATION, "class error of the graphics engine", _ALL),
    (73, Tier.RECORD, Cause.DRIVER, Remedy.UNUSED, "error of video encoder 2", _NONE),
    (78, Tier.RECORD, Cause.DRIVER, Remedy.UPDATE_SOFTWARE, "a vGPU did not start", _ALL),
    (109, Tier.WARN, Cause.DRIVER, Remedy.RESET_GPU, "context switch timed out", _ALL),
    (139, Tier.RECORD, Cause.DRIVER, Remedy.RESTART_APPLICATION, "exception of optical flow engine 1", _BG),
    (142, Tier.WARN, Cause.DRIVER, Remedy.CONTACT_SUPPORT, "error of video encoder 3", _G),
    (151, Tier.WARN, Cause.SECURITY, Remedy.RESTART_VM, "key rotation of confidential computing failed", _HBG),
    (152, Tier.RECORD, Cause.DRIVER, Remedy.NOTHING, "memory management error of the deep learning accelerator", _NONE),
    (153, Tier.RECORD, Cause.DRIVER, Remedy.NOTHING, "timeout of the deep learning accelerator", _NONE),
    (166, Tier.WARN, Cause.SECURITY, Remedy.NOT_STATED, "confidential traffic before the link was encrypted", _BG),
    (169, Tier.WARN, Cause.FIRMWARE, Remedy.NOT_STATED, "the security processor halted", _HBG),
    (170, Tier.WARN, Cause.SECURITY, Remedy.NOT_STATED, "interrupt in confidential computing", _BG),
)  # fmt: skip
_MEMORY: Final[tuple[_Row, ...]] = (
    (48, Tier.CORDON, Cause.MEMORY, Remedy.FOLLOW_WORKFLOW, "uncorrectable memory error", _ALL),
    (63, Tier.RESET, Cause.MEMORY, Remedy.NOTHING, "a memory row or page is to be replaced at the next reset", _ALL),
    (64, Tier.CORDON, Cause.MEMORY, Remedy.RESET_GPU, "a memory row or page could not be replaced", _ALL),
    (92, Tier.WARN, Cause.MEMORY, Remedy.NOTHING, "many corrected memory errors", _ALL),
    (94, Tier.RESET, Cause.MEMORY, Remedy.RESTART_APPLICATION, "contained memory error, which ended one program", _ALL),
    (95, Tier.CORDON, Cause.MEMORY, Remedy.RESET_GPU, "uncontained memory error", _ALL),
    (140, Tier.CORDON, Cause.MEMORY, Remedy.RESET_GPU, "memory error from which nothing recovered", _ALL),
    (160, Tier.RESET, Cause.MEMORY, Remedy.NOTHING, "a memory channel was retired", _BG),
    (161, Tier.WARN, Cause.MEMORY, Remedy.NOTHING, "a memory channel could not be retired", _BG),
    (168, Tier.WARN, Cause.MEMORY, Remedy.NOT_STATED, "less memory than the board has, since some of it is bad", _ALL),
    (171, Tier.CORDON, Cause.MEMORY, Remedy.NOT_STATED, "uncorrectable memory error, in the DRAM", _ALL),
    (172, Tier.CORDON, Cause.MEMORY, Remedy.NOT_STATED, "uncorrectable memory error, in the SRAM", _ALL),
    (175, Tier.WARN, Cause.MEMORY, Remedy.NOT_STATED, "error of the memory subsystem", _NONE),
)  # fmt: skip
_HARDWARE: Final[tuple[_Row, ...]] = (
    (32, Tier.WARN, Cause.BUS, Remedy.RESTART_APPLICATION, "corrupted push buffer", _ALL),
    (46, Tier.CORDON, Cause.HARDWARE, Remedy.RESET_GPU, "the GPU stopped working", _ALL),
    (54, Tier.CORDON, Cause.POWER, Remedy.CHECK_SEATING, "auxiliary power is not connected", _AHB),
    (62, Tier.CORDON, Cause.FIRMWARE, Remedy.RESET_GPU, "the power management unit halted", _ALL),
    (79, Tier.CORDON, Cause.BUS, Remedy.REBOOT_NODE, "the GPU fell off the bus", _ALL),
    (80, Tier.WARN, Cause.BUS, Remedy.RESTART_APPLICATION, "corrupted data sent to the GPU", _AH),
    (93, Tier.RECORD, Cause.INFOROM, Remedy.NOTHING, "the InfoROM is written too often", _A),
    (110, Tier.CORDON, Cause.HARDWARE, Remedy.RESET_GPU, "security fault", _HBG),
    (119, Tier.CORDON, Cause.FIRMWARE, Remedy.RESET_GPU, "the GPU's system processor does not answer", _ALL),
    (120, Tier.CORDON, Cause.FIRMWARE, Remedy.RESET_GPU, "error of the GPU's system processor", _ALL),
    (122, Tier.WARN, Cause.INFOROM, Remedy.UNUSED, "flash memory not read", _NONE),
    (123, Tier.WARN, Cause.INFOROM, Remedy.UNUSED, "flash memory not written", _NONE),
    (124, Tier.WARN, Cause.INFOROM, Remedy.UNUSED, "flash memory not erased", _NONE),
    (125, Tier.WARN, Cause.INFOROM, Remedy.UNUSED, "error of the InfoROM's file system", _NONE),
    (143, Tier.CORDON, Cause.HARDWARE, Remedy.RESET_GPU, "the GPU was not initialised", _HBG),
    (156, Tier.RESET, Cause.HARDWARE, Remedy.RESET_GPU, "a part of the GPU was retired", _HBG),
    (157, Tier.WARN, Cause.HARDWARE, Remedy.NOTHING, "a part of the GPU could not be retired", _HBG),
    (158, Tier.CORDON, Cause.HARDWARE, Remedy.RESET_GPU, "fatal timeout of the GPU", _ALL),
    (162, Tier.RECORD, Cause.POWER, Remedy.NOT_STATED, "power smoothing is on again", _BG),
    (163, Tier.WARN, Cause.POWER, Remedy.NOT_STATED, "power smoothing is off", _BG),
    (164, Tier.RECORD, Cause.POWER, Remedy.NOT_STATED, "the power smoothing circuit wears out", _BG),
    (165, Tier.WARN, Cause.POWER, Remedy.NOT_STATED, "the power smoothing circuit is worn out", _BG),
    (167, Tier.CORDON, Cause.BUS, Remedy.NOT_STATED, "fatal timeout of PCIe", _HBG),
    (176, Tier.WARN, Cause.BUS, Remedy.NOT_STATED, "correctable errors of PCIe", _NONE),
)  # fmt: skip
_LINKS: Final[tuple[_Row, ...]] = (
    (74, Tier.LINK, Cause.LINK, Remedy.FOLLOW_WORKFLOW, "NVLink error", _AH),
    (121, Tier.WARN, Cause.LINK, Remedy.NOTHING, "corrected error of the link to the CPU", _G),
    (136, Tier.LINK, Cause.LINK, Remedy.RESET_GPU, "an NVLink could not be trained", _H),
    *(
        (s.number, Tier.LINK, Cause.LINK, Remedy.FOLLOW_WORKFLOW, f"NVLink error in {s.name}", _BG)
        for s in Subsystem
    ),
    (155, Tier.LINK, Cause.LINK, Remedy.RESET_GPU, "an NVLink was taken down on purpose", _BG),
    (159, Tier.WARN, Cause.LINK, Remedy.CHECK_UVM, "error of the link to the CPU, without data", _BG),
    (173, Tier.CORDON, Cause.LINK, Remedy.NOT_STATED, "fatal failure of the link to the CPU", _NONE),
)  # fmt: skip
_META: Final[tuple[_Row, ...]] = (
    (RECOVERY_CHANGED, Tier.TOLD, Cause.SYMPTOM, Remedy.FOLLOW_WORKFLOW, "what would recover the GPU has changed", _ALL),
)  # fmt: skip


def _engines() -> Iterator[_Row]:
    """Yield the numbers that repeat one meaning for each engine of a kind."""
    copy = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
    for engine, number in enumerate(copy):
        meaning = f"exception of copy engine {engine}"
        yield number, Tier.WARN, Cause.DRIVER, Remedy.RESTART_APPLICATION, meaning, _ALL
    media = (82, 83, 84, 86, 88, 89, *range(96, 106))
    for number in media:
        meaning = "exception of a video, image or optical flow engine"
        yield number, Tier.RECORD, Cause.DRIVER, Remedy.RESTART_APPLICATION, meaning, _ALL


def _facts() -> Iterator[XidFact]:
    listed = (*_APPLICATION, *_DRIVER, *_MEMORY, *_HARDWARE, *_LINKS, *_META, *_engines())
    for number, tier, cause, remedy, meaning, boards in sorted(listed):
        yield XidFact(
            number=number, tier=tier, cause=cause, remedy=remedy, meaning=meaning, boards=boards
        )


XIDS: Final[Mapping[int, XidFact]] = MappingProxyType({fact.number: fact for fact in _facts()})


def tier_of(number: int) -> Tier:
    """Return how a number is taken; one that is not listed is worth a warning, and no more."""
    return XIDS[number].tier if number in XIDS else Tier.WARN


def meaning_of(number: int) -> str:
    """Return what a number means, in a few words."""
    return XIDS[number].meaning if number in XIDS else "not known to this program"
