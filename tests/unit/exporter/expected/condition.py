"""Identity, state and errors of boards. Nothing breaks on this node: every error count is 0."""

from simulator.memory_errors import BANKS
from slicewatch.hardware.features import CUDA_CAPABILITIES, joins_fabric
from tests.unit.exporter.mixed import boards, each

DRIVER = "580.95.05"


def _zeros(*names):
    return dict.fromkeys(names, 0)


def _locations(*, volatile):
    """Return 0 per memory: of instances, uncorrected errors outside of the DRAM alone."""

    def of(scene, place):
        if place.mig:
            return {("sram", "uncorrected"): 0} if volatile else None
        return {
            (location, kind): 0
            for location in ("dram", "sram")
            for kind in ("corrected", "uncorrected")
        }

    return of


def _whole(value):
    """Return what only a GPU that is not in MIG mode tells."""
    return lambda _, place: None if place.gpu.mig_enabled else value


def _joined(value):
    return lambda _, place: value if joins_fabric(place.gpu.model) else None


def _identity(scene, place):
    board = place.gpu.identity
    known = (board.pci_bus_id, board.serial, board.board_part_number, board.vbios, DRIVER)
    return {known: 1}


def _placement(scene, place):
    if place.mig is None:
        return None
    placement = place.mig.placement
    return {(f"{placement.start}:{placement.size}", str(place.mig.profile.sm_count)): 1}


def _architecture(scene, place):
    architecture = place.gpu.model.architecture
    major, minor = CUDA_CAPABILITIES[architecture]
    return {(architecture.value, f"{major}.{minor}"): 1}


def _modes(scene, place):
    if not place.gpu.model.supports_mig:
        return None
    return dict.fromkeys(("current", "pending"), int(place.gpu.mig_enabled))


def _compute_mode(scene, place):
    return {"default": 1} if place.mig or not place.gpu.mig_enabled else None


SRAM = ("corrected", "uncorrected_parity", "uncorrected_sec_ded")
FABRIC_STATES = {"not_started": 0, "in_progress": 0, "completed": 1}
FABRIC_FAULTS = (
    "degraded_bandwidth",
    "route_recovery",
    "route_unhealthy",
    "access_timeout_recovery",
    "incorrect_configuration",
)
ACTIONS = {
    "none": 1, "gpu_reset": 0, "node_reboot": 0, "drain_p2p": 0, "drain_and_reset": 0,
    "bus_reset": 0, "recover_imex_domain": 0, "system_reboot": 0,
}  # fmt: skip
FAMILIES = {
    "gpu_up": boards(lambda scene, place: float(scene.truth.up(place.uuid, scene.now))),
    "gpu_reading_age_seconds": each(0, within=0.001),
    "gpu_info": boards(_identity, "pci_bus_id", "serial", "board", "vbios", "driver"),
    # Nobody listens to events here.
    "gpu_xid_events_total": each(None),
    "gpu_xid_errors_total": each(None),
    "gpu_xid_last_seen_timestamp_seconds": each(None),
    "gpu_ecc_events_total": each(None),
    # Everything here comes from NVML.
    "gpu_metric_source_info": boards(None),
    "gpu_mig_info": each(_placement, "placement", "sm_count"),
    "gpu_mig_mode": boards(_modes, "state"),
    "gpu_ecc_mode": boards({"current": 1, "pending": 1}, "state"),
    "gpu_persistence_mode": boards(1),
    "gpu_compute_mode_info": each(_compute_mode, "mode"),
    "gpu_architecture_info": boards(_architecture, "architecture", "cuda_capability"),
    "gpu_inforom_info": boards(
        {("image", "SIM0.0200.00.01"): 1, ("oem", "2.1"): 1, ("ecc", "7.16"): 1},
        "object", "version",
    ),
    "gpu_inforom_valid": boards(1),
    "gpu_fabric_state": boards(_joined(FABRIC_STATES), "state"),
    "gpu_fabric_healthy": boards(_joined(1)),
    "gpu_fabric_fault": boards(_joined(_zeros(*FABRIC_FAULTS)), "kind"),
    "gpu_recovery_action": boards(ACTIONS, "action"),
    "gpu_ecc_errors_volatile_total": boards(_zeros("corrected", "uncorrected"), "kind"),
    "gpu_ecc_errors_aggregate_total": boards(_zeros("corrected", "uncorrected"), "kind"),
    "gpu_ecc_location_errors_volatile_total": each(_locations(volatile=True), "location", "kind"),
    "gpu_ecc_location_errors_aggregate_total": each(
        _locations(volatile=False), "location", "kind"
    ),
    "gpu_ecc_sram_threshold_exceeded": boards(0),
    "gpu_ecc_sram_errors_volatile_total": boards(_zeros(*SRAM), "kind"),
    "gpu_ecc_sram_errors_aggregate_total": boards(_zeros(*SRAM), "kind"),
    "gpu_ecc_sram_uncorrected_errors_aggregate_total": boards(
        _zeros("l2", "sm", "pcie", "microcontroller", "other"), "location"
    ),
    "gpu_remapped_rows_total": boards(_whole(_zeros("correctable", "uncorrectable")), "cause"),
    "gpu_row_remap_pending": boards(_whole(0)),
    "gpu_row_remap_failure": boards(_whole(0)),
    "gpu_row_remap_banks": boards(
        _whole({"max": BANKS, **_zeros("high", "partial", "low", "none")}), "availability"
    ),
    # All of the boards remap rows, as every GPU since Ampere does, and retire no pages.
    "gpu_retired_pages": boards(None),
    "gpu_retired_pages_pending": boards(None),
}  # fmt: skip
