"""A dcgm-exporter beside ours fills in for NVML: the whole way from its page to our series."""

import re
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from simulator.fleet import Fleet
from tests.integration.processes import (
    DEADLINE_SECONDS,
    complaints,
    exporter,
    samples,
    until,
)

pytestmark = pytest.mark.timeout(120)

RECORDED = Path(__file__).parents[1] / "recorded" / "dcgm" / "2.6-a100-40gb.prom"


@contextmanager
def page_server(text):
    """Serve one page, as a dcgm-exporter on the node would; yield its URL and how to stop it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()

    def stop():
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE_SECONDS)

    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics", stop
    finally:
        stop()


def adapted_page(gpu, ratios):
    """Return the recorded page of an A100, as if it were of these instances of this GPU."""
    recorded = RECORDED.read_text(encoding="utf-8")
    recorded = re.sub(r'UUID="[^"]+"', f'UUID="{gpu.uuid}"', recorded)
    whole = [line for line in recorded.splitlines() if "GPU_I_ID" not in line]
    (line,) = re.findall(r'DCGM_FI_PROF_GR_ENGINE_ACTIVE\{[^}]*GPU_I_ID="13"[^}]*\}', recorded)
    for mig, ratio in zip(gpu.mig_devices, ratios, strict=True):
        moved = line.replace('GPU_I_ID="13"', f'GPU_I_ID="{mig.gpu_instance_id}"')
        whole.append(f"{moved.replace('1g.5gb', mig.profile.name)} {ratio}")
    return "\n".join([*whole, ""])


def utilization(found, gpu):
    return {
        s.labels["gpu_instance"]: s.value for s in found
        if s.name == "gpu_utilization" and s.labels["gpu"] == gpu and "gpu_instance" in s.labels
    }  # fmt: skip


def test_the_page_of_a_dcgm_exporter_fills_in_for_nvml_until_it_stops():
    """gpu-monitoring-tools #188: what DCGM said last is not shown for ever."""
    gpu = Fleet.named("mixed").nodes[0].gpus[3]
    ratios = (0.25, 0.5, 0.75)
    expected = {
        str(mig.gpu_instance_id): 100 * ratio
        for mig, ratio in zip(gpu.mig_devices, ratios, strict=True)
    }
    with page_server(adapted_page(gpu, ratios)) as (url, stop), ExitStack() as stack:
        running = exporter(
            "--simulate", "mixed", "--kubelet-socket", "", "--dcgm-url", url,
            "--dcgm-interval-seconds", "1",
        )  # fmt: skip
        stack.callback(running.end)

        def scraped(condition):
            found = samples(running.get("/metrics"))
            return found if condition(found) else None

        # Of the other GPU with instances, a Hopper, NVML knows it by itself.
        found = until(
            lambda: scraped(
                lambda found: (
                    utilization(found, "3") == expected and len(utilization(found, "4")) == 4
                )
            )
        )
        marked = {
            (s.labels["gpu"], s.labels.get("gpu_instance"), s.labels["source"])
            for s in found
            if s.name == "gpu_metric_source_info"
        }
        assert marked == {("3", instance, "dcgm") for instance in expected}
        assert complaints(running.get("/metrics")) == []
        stop()
        found = until(lambda: scraped(lambda found: not utilization(found, "3")))
        assert not [s for s in found if s.name == "gpu_metric_source_info"]
        assert len(utilization(found, "4")) == 4
        reasons = {
            s.labels["reason"]
            for s in found
            if s.name == "gpu_metric_supported"
            and s.labels["metric"] == "gpu_utilization"
            and s.labels.get("gpu_instance") in expected
            and s.labels["gpu"] == "3"
        }
        assert reasons == {"dcgm_unreachable"}
