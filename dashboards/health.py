"""Health: what the monitors have found and done."""

from typing import Final

from dashboards import units
from dashboards.model import Dashboard, Form, Limit, Link, Panel, Query, Row
from dashboards.variables import CLUSTER, NODE, OF_CLUSTER, OF_NODE

DASHBOARD: Final = Dashboard(
    name="health",
    title="Slicewatch / Health",
    intent="Which GPUs are ill, which nodes are cordoned and by whom, and what is left of the"
    " budget.",
    needs=("health", "exporter"),
    variables=(CLUSTER, NODE),
    rows=(
        Row(
            title="Now",
            panels=(
                Panel(
                    title="Nodes by condition",
                    reading="How many nodes have each. GPUUnhealthy costs a cordon; the others do"
                    " not.",
                    queries=(
                        Query(
                            expr="sum by (condition)"
                            f" (slicewatch_health_condition{{{OF_NODE}}})",
                            legend="{{condition}}",
                        ),
                    ),
                    unit=units.COUNT, form=Form.NUMBER, height=5,
                    limits=(Limit(value=1, colour="orange"),),
                ),
                Panel(
                    title="Cordons",
                    reading="ours: taken back when the fault is over. foreign: somebody else's.",
                    queries=(
                        Query(
                            expr=f"sum by (state) (slicewatch_health_cordon{{{OF_NODE}}})",
                            legend="{{state}}",
                        ),
                    ),
                    unit=units.COUNT, form=Form.NUMBER, width=6, height=5,
                ),
                Panel(
                    title="Budget of cordons",
                    reading="How many nodes hold a slot, and how many may. It is as of the last"
                    " attempt to cordon; absent before the first.",
                    queries=(
                        Query(
                            expr=f"max by (kind) (slicewatch_health_budget_nodes{{{OF_CLUSTER}}})",
                            legend="{{kind}}",
                        ),
                    ),
                    unit=units.COUNT, form=Form.NUMBER, width=6, height=5,
                    empty="No cordon was tried yet",
                ),
                Panel(
                    title="Findings",
                    reading="Checks that have found something. What to do is on the page of the"
                    " check, docs/runbooks/<check>.md.",
                    queries=(
                        Query(
                            expr="sum by (node, gpu, uuid, check, state) (gpu_health_check_state"
                            f'{{{OF_NODE},state=~"suspect|unhealthy|recovering"}})',
                            legend="Since the last poll",
                        ),
                    ),
                    unit=units.COUNT, form=Form.TABLE, width=24, empty="Nothing was found",
                    links=(
                        Link(label="node", dashboard="node", variable="node"),
                        Link(label="uuid", dashboard="gpu", variable="uuid"),
                    ),
                ),
            ),
        ),
        Row(
            title="Over time",
            panels=(
                Panel(
                    title="Checks by state",
                    reading="How many checks of GPUs and nodes are in each state. Unknown is not"
                    " well: boards that cannot report something, or an exporter that is silent.",
                    queries=(
                        Query(
                            expr=f"sum by (state) (gpu_health_check_state{{{OF_NODE}}})",
                            legend="{{state}}",
                        ),
                    ),
                    unit=units.COUNT, form=Form.AREAS, least=0,
                ),
                Panel(
                    title="Faults by what they lead to",
                    reading="record: an event. warn: GPUDegraded. reset: at a convenient time."
                    " cordon: the node takes no new pods.",
                    queries=(
                        Query(
                            expr=f"sum by (action) (slicewatch_health_faults{{{OF_NODE}}})",
                            legend="{{action}}",
                        ),
                    ),
                    unit=units.COUNT, least=0,
                ),
                Panel(
                    title="Xids",
                    reading="Reported per hour, by number.",
                    queries=(
                        Query(
                            expr="sum by (xid)"
                            f" (increase(gpu_xid_errors_total{{{OF_NODE}}}[1h]))",
                            legend="Xid {{xid}}",
                        ),
                    ),
                    unit=units.COUNT, least=0, empty="No Xid was reported",
                ),
                Panel(
                    title="Memory waiting for a repair",
                    reading="Boards with a row or page that is taken out of use with their next"
                    " reset, and boards that could not be repaired.",
                    queries=(
                        Query(
                            expr=f"sum(gpu_row_remap_pending{{{OF_NODE}}})", legend="rows pending"
                        ),
                        Query(
                            expr=f"sum(gpu_row_remap_failure{{{OF_NODE}}})", legend="rows failed"
                        ),
                        Query(
                            expr=f"sum(gpu_retired_pages_pending{{{OF_NODE}}})",
                            legend="pages pending",
                        ),
                    ),
                    unit=units.COUNT, least=0,
                ),
            ),
        ),
        Row(
            title="The monitors themselves",
            panels=(
                Panel(
                    title="Age of evidence",
                    reading="Of the nodes where it is oldest. Up to the monitor's interval is"
                    " normal.",
                    queries=(
                        Query(
                            expr="topk(5, max by (node)"
                            f" (slicewatch_health_evidence_age_seconds{{{OF_NODE}}}))",
                            legend="{{node}}",
                        ),
                    ),
                    unit=units.of("slicewatch_health_evidence_age_seconds"), width=8, least=0,
                ),
                Panel(
                    title="Writes",
                    reading="To the API server, by outcome. About ten an hour and node, most of them"
                    " to keep conditions fresh.",
                    queries=(
                        Query(
                            expr="sum by (kind, outcome) (rate(slicewatch_health_writes_total"
                            f"{{{OF_NODE}}}[$__rate_interval]))",
                            legend="{{kind}} {{outcome}}",
                        ),
                    ),
                    unit=units.rate_of("slicewatch_health_writes_total"), width=8, least=0,
                ),
                Panel(
                    title="Decisions and steps",
                    reading="What nodes should become, and how far that came: held is a cordon that"
                    " the budget does not allow.",
                    queries=(
                        Query(
                            expr="sum by (kind, outcome) (increase(slicewatch_health_steps_total"
                            f'{{{OF_NODE},kind!="nothing"}}[1h]))',
                            legend="{{kind}} {{outcome}}",
                        ),
                        Query(
                            expr="sum by (kind) (increase(slicewatch_health_decisions_total"
                            f"{{{OF_NODE}}}[1h]))",
                            legend="wish: {{kind}}",
                        ),
                    ),
                    unit=units.COUNT, width=8, least=0,
                ),
            ),
        ),
    ),
)  # fmt: skip
