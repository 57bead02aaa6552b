"""What the simulator raises."""


class ScenarioError(ValueError):
    """A scenario that is not valid.

    Attributes:
        where: path in the document, such as ``nodes[0].gpus[1].mig``.
        what: what is wrong there and what to write instead.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what


class NotSupportedError(Exception):
    """What a GPU cannot tell, for its model or its mode; NVML says ``NOT_SUPPORTED``."""
