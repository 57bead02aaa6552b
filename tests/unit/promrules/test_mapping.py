"""Labels name objects: one by one, or by a template in both directions."""

import pytest

from adapter.api.resources import DEPLOYMENTS, NAMESPACES, NODES, PODS, Resources
from slicewatch.promrules.faults import RuleError
from slicewatch.promrules.mapping import Mapping, Target, label_template

INGRESSES = Resources().find("ingresses.networking.k8s.io")
TEMPLATE = Mapping(targets=(), template=label_template("kube_<<.Group>>_<<.Resource>>"))


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (PODS, "kube__pod"),
        (DEPLOYMENTS, "kube_apps_deployment"),
        (INGRESSES, "kube_networking_k8s_io_ingress"),
    ],
)
def test_a_template_makes_a_label_of_a_kind_and_a_kind_of_a_label(kind, label):
    assert TEMPLATE.label(kind) == label
    (target,) = TEMPLATE.discovered(["job", label])
    assert target == Target(label=label, resource=kind.singular, group=kind.group)
    assert target.names(kind)


@pytest.mark.parametrize(
    ("resource", "group", "kind", "names"),
    [
        ("pod", "", PODS, True),
        ("pods", "", PODS, True),
        ("deployment", "", DEPLOYMENTS, True),
        ("deployments", "apps", DEPLOYMENTS, True),
        ("deployment", "extensions", DEPLOYMENTS, False),
        ("pod", "", NODES, False),
    ],
)
def test_a_kind_is_named_in_singular_or_plural_with_or_without_its_group(
    resource, group, kind, names
):
    assert Target(label="x", resource=resource, group=group).names(kind) == names


def test_labels_that_are_listed_come_before_the_template():
    listed = Target(label="exported_pod", resource="pod")
    mapping = Mapping(targets=(listed,), template=label_template("<<.Resource>>"))
    assert mapping.label(PODS) == "exported_pod"
    assert mapping.label(NODES) == "node"
    assert mapping.namespace_label == "namespace"
    assert mapping.discovered(["exported_pod", "node"])[0] is listed


def test_a_kind_without_a_label_has_none():
    mapping = Mapping(targets=(Target(label="pod", resource="pod"),))
    assert mapping.label(NODES) is None
    assert mapping.namespace_label is None
    assert mapping.discovered(["node"]) == []


def test_kinds_outside_of_namespaces_are_known():
    scopes = {name: Target(label="x", resource=name).is_root_scoped for name in ("nodes", "pod")}
    assert scopes == {"nodes": True, "pod": False}
    assert Target(label="x", resource=NAMESPACES.plural).is_namespace


@pytest.mark.parametrize(
    "text",
    ["pod", "<<.Group>>", "<<.Resource>><<.Resource>>", "<<if .Group>>a<<end>>_<<.Resource>>",
     "<<.Series>>", "kube-<<.Resource>>", '<<printf "%s" .Resource>>'],
)  # fmt: skip
def test_a_template_that_cannot_be_read_backwards_is_refused(text):
    with pytest.raises(RuleError):
        label_template(text)
