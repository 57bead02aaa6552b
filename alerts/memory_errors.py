"""Errors of device memory, and what was done about them. Corrected errors alone call nobody."""

from typing import Final

from alerts.model import DEVICE, Alert, Group, Severity, Source
from alerts.series import PER_GPU

_EXPORTER: Final = frozenset({Source.EXPORTER})

GROUP: Final = Group(
    name="memory-errors",
    title="Memory errors",
    intent="Memory of a GPU has failed, waits for a repair, or cannot be repaired any more.",
    rules=(
        Alert(
            name="GPUMemoryUncorrected",
            expr=f"""
            sum by ({PER_GPU}) (increase(gpu_ecc_errors_volatile_total{{kind="uncorrected"}}[1h]))
            > 0
            """,
            severity=Severity.WARNING,
            summary="Uncorrected memory errors on GPU {{ $labels.gpu }} of {{ $labels.node }}.",
            description="{{ $value | humanize }} in an hour. Whatever used that memory was ended or"
            " may have computed with wrong data.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUMemoryRepairPending",
            expr=f"""
            max by ({PER_GPU}) (gpu_row_remap_pending == 1)
            or max by ({PER_GPU}) (gpu_retired_pages_pending == 1)
            """,
            hold="1h",
            severity=Severity.WARNING,
            summary="Memory of GPU {{ $labels.gpu }} of {{ $labels.node }} waits for a repair.",
            description="A bad row or page of {{ $labels.uuid }} is taken out of use with the next"
            " reset. Until then it can fail again: plan one.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUMemoryRepairFailed",
            expr=f"max by ({PER_GPU}) (gpu_row_remap_failure == 1)",
            severity=Severity.CRITICAL,
            summary="Memory of GPU {{ $labels.gpu }} of {{ $labels.node }} cannot be repaired.",
            description="A bad row of {{ $labels.uuid }} could not be remapped. The board has to be"
            " replaced; give it no new work.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUMemoryNoSpareRows",
            expr=f'max by ({PER_GPU}) (gpu_row_remap_banks{{availability="none"}}) > 0',
            hold="5m",
            severity=Severity.WARNING,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} has banks without spare rows.",
            description="The next bad row in one of {{ $value }} banks cannot be remapped. Have the"
            " board replaced at a convenient time.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUSramThresholdExceeded",
            expr=f"max by ({PER_GPU}) (gpu_ecc_sram_threshold_exceeded == 1)",
            severity=Severity.WARNING,
            summary="SRAM of GPU {{ $labels.gpu }} of {{ $labels.node }} has failed too often.",
            description="By NVIDIA's own count {{ $labels.uuid }} is due for replacement.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
    ),
)
