"""What can go wrong, by name. Each message is one sentence that says what is wrong and where."""


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the setting and what is allowed."""


class RunDirError(ValueError):
    """The folder of a run cannot be used; the message says why."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be read or must not be used; the message says which and why."""


class NothingToLearnError(RuntimeError):
    """An iteration left the policy too few decisions; the message says how many and why."""


class NonFiniteLossError(ArithmeticError):
    """A loss or gradient is infinite or not a number; the message names the term and the moment."""
