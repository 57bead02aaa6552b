"""Which states of the MIG manager are passed on."""

from exporter.cluster.node_labels import MIG_STATE, MigStateFeed
from slicewatch.kube.objects import Metadata, Object


def node(state=None):
    labels = {"kubernetes.io/os": "linux"} | ({MIG_STATE: state} if state else {})
    return Object(metadata=Metadata(name="n1", labels=labels))


def test_each_new_state_is_told_once():
    told = []
    feed = MigStateFeed(told.append)
    states = ["success", "success", "pending", "pending", "failed"]
    for old, new in zip([None, *states], states, strict=False):
        feed.changed(old and node(old), node(new))

    assert told == ["success", "pending", "failed"]


def test_a_node_without_the_label_is_nothing_to_tell():
    told = []
    MigStateFeed(told.append).changed(None, node())

    assert told == []


def test_a_label_or_a_node_that_goes_away_ends_the_state():
    told = []
    feed = MigStateFeed(told.append)
    feed.changed(None, node("pending"))
    feed.changed(node("pending"), node())
    feed.changed(node(), node("pending"))
    feed.changed(node("pending"), None)

    assert told == ["pending", "", "pending", ""]
