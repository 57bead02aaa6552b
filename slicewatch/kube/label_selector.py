"""Label selectors of objects, written as requests carry them."""

import msgspec


class LabelRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """One expression of a selector. ``operator`` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it in the grammar of requests."""
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which labels are wanted; an empty one wants nothing in particular."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()

    def text(self) -> str:
        """Return it as the query parameter of a request, ordered by key as Kubernetes does."""
        equal = [(key, f"{key}={value}") for key, value in self.match_labels.items()]
        others = [(one.key, one.text()) for one in self.match_expressions]
        return ",".join(text for _, text in sorted(equal + others))
