"""GPUs that several use, and how they are partitioned.

Contention pages by the share of contended time only: ``gpu_contention_ratio`` ranks and explains.
"""

from typing import Final

from alerts.model import Alert, Group, Severity, Source
from alerts.series import PER_DEVICE, PER_GPU, PER_NODE
from alerts.thresholds import (
    CONTENDED_RATIO,
    MOST_REPLICAS,
    SHARED_MEMORY_PERCENT,
    VGPU_MEMORY_RATIO,
)

_EXPORTER: Final = frozenset({Source.EXPORTER})

GROUP: Final = Group(
    name="sharing",
    title="Sharing",
    intent="Tenants of one GPU are in each other's way, or a GPU is divided in a way that hurts.",
    rules=(
        Alert(
            name="GPUContended",
            expr=f"""
            sum by ({PER_DEVICE}) (rate(gpu_contended_seconds_total[15m]))
            / sum by ({PER_DEVICE}) (rate(gpu_sampled_seconds_total[15m]))
            > {CONTENDED_RATIO}
            """,
            hold="30m",
            severity=Severity.WARNING,
            summary="Tenants of GPU {{ $labels.gpu }} of {{ $labels.node }} are in each other's way.",
            description="For {{ $value | humanizePercentage }} of the time several wanted a GPU that"
            " was full. Lower the oversubscription factor, move one of them, or partition the GPU"
            " with MIG.",
            sources=_EXPORTER,
        ),
        Alert(
            name="GPUVgpuContended",
            expr=f"max by ({PER_GPU}) (gpu_vgpu_wait_ratio) > {CONTENDED_RATIO}",
            hold="30m",
            severity=Severity.WARNING,
            summary="vGPUs of GPU {{ $labels.gpu }} of {{ $labels.node }} wait for each other.",
            description="They wait for {{ $value | humanizePercentage }} of the time that they want"
            " to run. Lower the oversubscription factor: fewer vGPUs on this GPU.",
            sources=_EXPORTER,
        ),
        Alert(
            name="GPUOversubscribed",
            expr=f"max by ({PER_DEVICE}) (gpu_sharing_replicas) > {MOST_REPLICAS}",
            hold="1h",
            severity=Severity.INFO,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is offered {{ $value }} times.",
            description="With so many replicas a tenant waits long for its turn. Start at 4 and go"
            " up only while contention stays low.",
            sources=_EXPORTER,
        ),
        Alert(
            name="GPUSharedMemoryNearLimit",
            expr=f"""
            max by ({PER_DEVICE}) (gpu_memory_utilization) > {SHARED_MEMORY_PERCENT}
            and max by ({PER_DEVICE}) (gpu_tenants_active) > 1
            """,
            hold="15m",
            severity=Severity.WARNING,
            summary="Memory of shared GPU {{ $labels.gpu }} of {{ $labels.node }} is nearly used"
            " up.",
            description="{{ $value | humanize }} % are allocated by several tenants; the next"
            " allocation of any of them may fail. Find the largest by gpu_tenant_memory_used_bytes.",
            sources=_EXPORTER,
        ),
        Alert(
            name="GPUVgpuMemoryNearLimit",
            expr=f"""
            max by ({PER_GPU}, vgpu) (gpu_vgpu_memory_used_bytes)
            / max by ({PER_GPU}, vgpu) (gpu_vgpu_memory_limit_bytes)
            > {VGPU_MEMORY_RATIO}
            """,
            hold="15m",
            severity=Severity.WARNING,
            summary="A vGPU of GPU {{ $labels.gpu }} of {{ $labels.node }} is nearly out of memory.",
            description="vGPU {{ $labels.vgpu }} uses {{ $value | humanizePercentage }} of its frame"
            " buffer. Give the virtual machine a vGPU type with more.",
            sources=_EXPORTER,
        ),
        Alert(
            name="GPUMigAndVgpuMixed",
            expr=f"""
            count by ({PER_NODE}) (gpu_mig_mode{{state="current"}} == 1)
            and on ({PER_NODE}) count by ({PER_NODE}) (gpu_vgpu_active > 0)
            """,
            hold="1h",
            severity=Severity.WARNING,
            summary="Node {{ $labels.node }} runs vGPUs beside partitioned GPUs.",
            description="Mixed nodes lose 15 to 20 % and cannot be scheduled well. Keep the kinds on"
            " nodes of their own.",
            sources=_EXPORTER,
        ),
        Alert(
            name="GPUMigProfilesMixed",
            expr=f"""
            count by ({PER_NODE}, gpu) (count by ({PER_NODE}, gpu, profile) (gpu_mig_info)) > 1
            """,
            hold="1h",
            severity=Severity.INFO,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} has {{ $value }} MIG profiles.",
            description="Slices of several sizes on one GPU leave gaps that no pod fits into. One"
            " profile per GPU is easier to fill.",
            sources=_EXPORTER,
        ),
        Alert(
            name="GPUMigWithoutDevices",
            expr=f"""
            max by ({PER_NODE}, gpu) (gpu_mig_mode{{state="current"}} == 1)
            unless on ({PER_NODE}, gpu) gpu_mig_info
            """,
            hold="30m",
            severity=Severity.WARNING,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is partitioned into nothing.",
            description="It is in MIG mode and has no MIG device: no pod can use it. Create the"
            " devices, or turn MIG off.",
            sources=_EXPORTER,
        ),
    ),
)
