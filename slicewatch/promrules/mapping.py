"""Which label of the series names which object: ``resources`` of a rule."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from slicewatch.promrules.faults import FaultKind, RuleError
from slicewatch.promrules.promql import is_label
from slicewatch.promrules.template import Template
from slicewatch.promrules.template_nodes import Field, Output, Text

ROOT_SCOPED: Final = frozenset({"namespace", "node", "persistentvolume"})
"""Kinds of core that stand outside of namespaces, in the singular."""
FIELDS: Final = ("Group", "Resource")


class ObjectKind(Protocol):
    """A kind of objects by its names; group empty for the core one."""

    @property
    def group(self) -> str:
        """Return the group of its API."""
        ...

    @property
    def plural(self) -> str:
        """Return its name in paths."""
        ...

    @property
    def singular(self) -> str:
        """Return the name of one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A label, and the kind whose objects it names, as the rule writes it.

    Attributes:
        resource: plural or singular, in lower case.
        group: empty: the core one, or that of the first kind which is called so.
    """

    label: str
    resource: str
    group: str = ""

    @property
    def name(self) -> str:
        """Return the kind as clients write it, such as ``deployment.apps``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def names(self, kind: ObjectKind) -> bool:
        """Tell whether it names objects of a kind."""
        return self.resource in {kind.plural, kind.singular} and self.group in {"", kind.group}

    @property
    def is_namespace(self) -> bool:
        """Tell whether the label has the namespace."""
        return self.group == "" and self.resource in {"namespace", "namespaces"}

    @property
    def is_root_scoped(self) -> bool:
        """Tell whether its objects stand outside of namespaces, as far as rules know."""
        return self.group == "" and self.resource.removesuffix("s") in ROOT_SCOPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Labels that are named one by one, and a template for all others."""

    targets: tuple[Target, ...]
    template: Template | None = None

    def label(self, kind: ObjectKind) -> str | None:
        """Return the label that names the objects of a kind; None if the rule has none."""
        named = (target.label for target in self.targets if target.names(kind))
        found = next(named, None)
        if found is not None or self.template is None:
            return found
        return self._made(kind.group, kind.singular)

    @property
    def namespace_label(self) -> str | None:
        """Return the label that has the namespace; None if the rule has none."""
        named = (target.label for target in self.targets if target.is_namespace)
        found = next(named, None)
        if found is not None or self.template is None:
            return found
        return self._made("", "namespace")

    def discovered(self, labels: Iterable[str]) -> list[Target]:
        """Return what labels of series name: those that are listed, then those of the template.

        A label of the template may be called like a kind that does not exist.
        """
        by_label = {target.label: target for target in self.targets}
        found = ((by_label.get(label) or self._parsed(label)) for label in labels)
        return [target for target in found if target is not None]

    def _made(self, group: str, singular: str) -> str | None:
        if self.template is None:
            return None
        sanitized = group.replace(".", "_").replace("-", "_")
        return self.template.render({"Group": sanitized, "Resource": singular}) or None

    def _parsed(self, label: str) -> Target | None:
        if self.template is None:
            return None
        found = re.fullmatch(_pattern(self.template), label)
        if found is None:
            return None
        parts = found.groupdict()
        group = parts.get("Group", "").replace("_", ".")
        return Target(label=label, resource=parts["Resource"], group=group)


def label_template(text: str) -> Template:
    """Return the template of labels.

    Raises:
        RuleError: it is none, or has something else than texts, ``.Resource`` and ``.Group``.
    """
    template = Template(text, FIELDS)
    fields = [node.expression for node in template.nodes if isinstance(node, Output)]
    plain = all(
        isinstance(node, Text) or (isinstance(node, Output) and isinstance(node.expression, Field))
        for node in template.nodes
    )
    names = [field.name for field in fields if isinstance(field, Field)]
    if not plain or names.count("Resource") != 1 or names.count("Group") > 1:
        raise RuleError(
            FaultKind.RESOURCES,
            f"{text!r} cannot be read backwards, from a label to a kind",
            "write <<.Resource>> once, <<.Group>> at most once, and plain text around them",
        )
    rendered = template.render({"Group": "g", "Resource": "r"})
    if not is_label(rendered):
        raise RuleError(
            FaultKind.RESOURCES,
            f"{text!r} makes {rendered!r}, which is no label",
            "use letters, digits and underscores",
        )
    return template


def _pattern(template: Template) -> str:
    parts = []
    for node in template.nodes:
        if isinstance(node, Text):
            parts.append(re.escape(node.text))
        elif isinstance(node, Output) and isinstance(node.expression, Field):
            # Kinds have no underscores; groups have them for their dots.
            letters = "[a-z0-9]+" if node.expression.name == "Resource" else r"\w*"
            parts.append(f"(?P<{node.expression.name}>{letters})")
    return "".join(parts)
