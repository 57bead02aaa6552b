"""Every check, in an order in which causes come before what follows from them."""

from typing import Final

from exporter.doctor.check import Check, Finding
from exporter.doctor.checks import driver, gpus, mig, services
from exporter.doctor.facts import Facts

ANYWHERE: Final[tuple[Check, ...]] = (services.SETTINGS, services.PORT, driver.gpus_on_bus)
WITH_GPUS: Final[tuple[Check, ...]] = (
    driver.driver_library, driver.kernel_module, driver.driver_versions, driver.device_files,
    driver.nvml, gpus.gpus_answer, gpus.readings, gpus.permissions, gpus.persistence_mode,
    gpus.sample_clock, gpus.process_utilization, mig.mig_instances, mig.mig_pending,
    mig.gpm, services.PROCESSES, services.LINKS, services.kubelet,
    services.device_ids, services.DCGM, services.API_SERVER,
)  # fmt: skip


def judge(facts: Facts) -> tuple[Finding, ...]:
    """Return what every check that applies has found; without GPUs few do."""
    checks = ANYWHERE + WITH_GPUS if facts.has_gpus else ANYWHERE
    return tuple(found for check in checks if (found := check.find(facts)) is not None)
