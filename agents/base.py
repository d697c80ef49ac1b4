"""What an agent is, and how a text names one.

A *spec* is ``kind``, ``kind:key=value,key=value``, ``ppo:path[,key=value]`` (likewise ``rllib:``,
``onnx:`` and ``torchscript:``) or ``python:module:Class``. :func:`load` turns it into an agent. An
agent sees the action mask and the default observation
(:data:`schnapsen_env.observation.DEFAULT_LAYOUT`), and nothing else.

Shapes: ``F`` features of the default observation, 27 actions, ``N`` positions at once.
"""

from __future__ import annotations

import importlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from schnapsen_env.integers import as_integer
from schnapsen_env.opponents import (
    DrawingPlayer,
    HeuristicOpponent,
    RandomOpponent,
    put_state,
    state_of,
)
from schnapsen_env.rules import Rules, resolve_rules

Observation = npt.NDArray[np.float32]
ActionMask = npt.NDArray[np.int8]
Actions = npt.NDArray[np.int64]


@runtime_checkable
class Agent(Protocol):
    """A player. One that draws random numbers should also have ``reset(seed)``.

    The positions of a batch are of different deals and stand in no order, so an agent must not
    carry anything from one row, or one call, to the next. The observation holds the whole past.
    """

    def act(self, observation: Observation, action_mask: ActionMask) -> int:
        """The action for one position: ``float32[F]`` and ``int8[27]`` to an id in 0-26."""
        ...

    def act_batch(self, observations: Observation, action_masks: ActionMask) -> Actions:
        """The actions for many positions: ``float32[N, F]``, ``int8[N, 27]`` to ``int64[N]``."""
        ...


class AgentError(ValueError):
    """An agent has raised an error, or answered with something that is no legal action."""


def checked_answer(answer: Any, count: int, name: str) -> Actions:
    """What an ``act_batch`` has returned, as ``int64[count]``.

    Args:
        answer: the answer.
        count: how many positions were asked about.
        name: what the agent is called in an error.

    Raises:
        AgentError: it has another shape, or does not hold integers.
    """
    actions = np.asarray(answer)
    if actions.shape != (count,) or actions.dtype.kind not in "iu":
        raise AgentError(
            f"{name}: act_batch must return {count} integers, one for each position, "
            f"not an array of shape {actions.shape} and type {actions.dtype}"
        )
    return actions.astype(np.int64)


class BatchAgent(ABC):
    """Gives ``act`` to a player that answers for many positions at once."""

    def act(self, observation: Observation, action_mask: ActionMask) -> int:
        """The action for one position: ``float32[F]`` and ``int8[27]`` to an id in 0-26.

        Raises:
            TypeError: see :meth:`act_batch`.
            ValueError: likewise.
        """
        return int(self.act_batch(np.asarray(observation)[None], np.asarray(action_mask)[None])[0])

    @abstractmethod
    def act_batch(self, observations: Observation, action_masks: ActionMask) -> Actions:
        """The actions for many positions: ``float32[N, F]``, ``int8[N, 27]`` to ``int64[N]``."""


class SamplingAgent(DrawingPlayer, BatchAgent):
    """A player of batches that can draw from its policy.

    Args:
        sample: draw from the policy instead of taking its most probable action.
        seed: where the drawing starts.
    """

    def __init__(self, *, sample: bool = False, seed: int = 0) -> None:
        super().__init__(seed)
        self.sample = sample


class OneByOne:
    """Gives ``act_batch`` to a player that can only ``act``.

    The player's ``reset(seed)`` is called if there is one.
    """

    def __init__(self, player: Any) -> None:
        self.player = player

    def act(self, observation: Observation, action_mask: ActionMask) -> int:
        """The player's own answer for one position."""
        return self.player.act(observation, action_mask)

    def act_batch(self, observations: Observation, action_masks: ActionMask) -> Actions:
        """Ask the player once for each row; ``int64[N]``.

        Raises:
            AgentError: an answer is not an integer.
        """
        actions = np.empty(len(observations), dtype=np.int64)
        for row, (observation, mask) in enumerate(zip(observations, action_masks, strict=True)):
            answer = self.player.act(observation, mask)
            number = np.asarray(answer)
            if number.shape != () or number.dtype.kind not in "iu":
                name = type(self.player).__name__
                raise AgentError(f"{name}.act must return one integer, not {answer!r}")
            actions[row] = number
        return actions

    def reset(self, seed: int) -> None:
        """Pass the seed on."""
        reset_agent(self.player, seed)

    def get_state(self) -> Any:
        """The player's own state, see :func:`schnapsen_env.opponents.state_of`."""
        return state_of(self.player)

    def set_state(self, state: Any) -> None:
        """Pass the state on."""
        put_state(self.player, state)


def reset_agent(agent: object, seed: int) -> None:
    """Call the agent's ``reset(seed)``, if it has that method."""
    reset = getattr(agent, "reset", None)
    if callable(reset):
        reset(seed)


def as_agent(player: Any, name: str) -> Agent:
    """``player`` as an :class:`Agent`; one without ``act_batch`` is asked row by row.

    Args:
        player: any object with ``act``.
        name: what the player is called in an error.

    Raises:
        ValueError: the object has no ``act``.
    """
    can_act = callable(getattr(player, "act", None))
    if not can_act:
        raise ValueError(
            f"{name} has no method act(observation, action_mask), which every agent needs"
        )
    return player if callable(getattr(player, "act_batch", None)) else OneByOne(player)


# ---------------------------------------------------------------------------------- the kinds


@dataclass(frozen=True)
class Spec:
    """A spec taken apart: ``ppo:runs/quick,endgame=exact`` has all three parts."""

    text: str
    kind: str
    target: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Kind:
    """One kind of agent.

    Args:
        usage: how its specs look.
        build: makes the agent from a spec, the rules and a seed.
        options: the options it takes; None if ``build`` checks them.
        has_target: whether a path or a class comes before the options.
    """

    usage: str
    build: Callable[[Spec, Rules, int], object]
    options: tuple[str, ...] | None = ()
    has_target: bool = False


_OPTION: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def parse_spec(text: str) -> Spec:
    """Take a spec apart and check everything but the values of its options.

    A comma belongs to the path unless a ``key=value`` follows it.

    Raises:
        ValueError: an unknown kind (the known ones are listed), an unknown option (likewise), a
            missing path or class, an option without a value or given twice.
        TypeError: not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"an agent spec is a string, not {type(text).__name__}")
    name, colon, rest = text.partition(":")
    if name not in KINDS:
        known = ", ".join(kind.usage for kind in KINDS.values())
        raise ValueError(f"unknown agent {text!r}: the known ones are {known}")
    kind = KINDS[name]
    parts = rest.split(",") if colon else []
    options = _take_options(text, parts, 1 if kind.has_target else 0)
    target = ",".join(parts)
    if kind.has_target and not target:
        raise ValueError(f"agent {text!r} is incomplete: write {kind.usage}")
    if parts and not kind.has_target:
        raise ValueError(f"agent {text!r}: {parts[-1]!r} is not an option; write {kind.usage}")
    unknown = [] if kind.options is None else [key for key in options if key not in kind.options]
    if unknown:
        taken = ", ".join(kind.options or ()) or "no options"
        raise ValueError(f"agent {text!r} has no option {unknown[0]!r}: {name} takes {taken}")
    return Spec(text, name, target, MappingProxyType(options))


def _take_options(text: str, parts: list[str], fewest: int) -> dict[str, str]:
    """Remove the ``key=value`` parts from the end of ``parts``, but leave the ``fewest`` first."""
    options: dict[str, str] = {}
    while len(parts) > fewest and (option := _OPTION.fullmatch(parts[-1])):
        key, value = option[1], option[2]
        if key in options:
            raise ValueError(f"agent {text!r} has the option {key!r} twice")
        if not value:
            raise ValueError(f"agent {text!r}: the option {key!r} has no value")
        options[key] = value
        parts.pop()
    return dict(reversed(options.items()))


def load(spec: str, rules: str | Rules = "pagat_auto", seed: int = 0) -> Agent:
    """The agent that ``spec`` names.

    Args:
        spec: ``"random"``, ``"heuristic"``, ``"rdeep:samples=16,depth=4"``,
            ``"pimc:worlds=20"``, ``"ismcts:iterations=1000"``, ``"ppo:path/to/checkpoint"``,
            ``"rllib:path/to/checkpoint"``, ``"onnx:file.onnx"``, ``"torchscript:file.pt"``,
            ``"python:module:Class"``; docs/agents.md has all options.
        rules: the rule set to be played, a name of ``RULES`` or a ``Rules`` object.
        seed: where the agent's own randomness starts.

    Raises:
        ValueError: the spec or the seed is wrong, or what the spec names cannot be loaded; the
            message says why.
        ModuleNotFoundError: a library is missing; the message names the extra that brings it.
        TypeError: ``spec`` or ``rules`` is of another type.
    """
    parsed = parse_spec(spec)
    number = as_integer(seed)
    if number is None or number < 0:
        raise ValueError(f"the seed of an agent is an integer from 0 on, not {seed!r}")
    built = KINDS[parsed.kind].build(parsed, resolve_rules(rules), number)
    return as_agent(built, f"agent {spec!r}")


def _build_random(_spec: Spec, _rules: Rules, seed: int) -> object:
    return RandomOpponent(seed)


def _build_heuristic(spec: Spec, rules: Rules, _seed: int) -> object:
    return _with_endgame(HeuristicOpponent(), spec, rules)


def _with_endgame(agent: object, spec: Spec, rules: Rules) -> object:
    """The agent with the option ``endgame`` of its spec."""
    if "endgame" not in spec.options:
        return agent
    from agents.endgame import with_endgame

    try:
        return with_endgame(agent, spec.options["endgame"], rules)
    except ValueError as error:
        raise ValueError(f"agent {spec.text!r}: {error}") from error


def _build_search(spec: Spec, rules: Rules, seed: int) -> object:
    from agents.search import ISMCTSAgent, PIMCAgent, RdeepAgent

    kinds = {"rdeep": RdeepAgent, "pimc": PIMCAgent, "ismcts": ISMCTSAgent}
    make: Callable[..., object] = kinds[spec.kind]
    try:
        return make(rules, seed, **spec.options)
    except ValueError as error:
        raise ValueError(f"agent {spec.text!r}: {error}") from error


def _build_ppo(spec: Spec, rules: Rules, seed: int) -> object:
    try:
        from agents.ppo import load_agent

        options = {key: value for key, value in spec.options.items() if key != "endgame"}
        agent = load_agent(spec.target, rules, seed, **options)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in ("agents", "schnapsen_env"):
            raise
        raise ModuleNotFoundError(
            f"agent {spec.text!r} needs the library {error.name!r}, which is not installed: "
            "pip install -e '.[play]'",
            name=error.name,
        ) from error
    return _with_endgame(agent, spec, rules)


def _build_rllib(spec: Spec, rules: Rules, seed: int) -> object:
    try:
        from agents.rllib_agent import load_agent
    except ImportError as error:
        raise ModuleNotFoundError(f"agent {spec.text!r}: {error}", name=error.name) from error
    return load_agent(spec.target, rules, seed, **spec.options)


def _build_exported(spec: Spec, rules: Rules, seed: int) -> object:
    from agents.exported import OnnxAgent, TorchScriptAgent, load_exported

    make, extra = (OnnxAgent, "export") if spec.kind == "onnx" else (TorchScriptAgent, "train")
    try:
        return load_exported(make, spec.target, rules, seed, **spec.options)
    except ModuleNotFoundError as error:
        if error.name not in ("onnxruntime", "torch"):
            raise
        raise ModuleNotFoundError(
            f"agent {spec.text!r} needs the library {error.name!r}, which is not installed: "
            f"pip install -e '.[{extra}]'",
            name=error.name,
        ) from error


def _build_python(spec: Spec, rules: Rules, seed: int) -> object:
    """Make ``Class(rules=..., seed=...)`` with whichever of the two keywords it accepts."""
    module_name, _, class_name = spec.target.partition(":")
    if not module_name or not class_name:
        raise ValueError(f"agent {spec.text!r} is incomplete: write {KINDS[spec.kind].usage}")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a script without a guard ends in sys.exit
        raise ValueError(
            f"agent {spec.text!r}: importing {module_name!r} fails with "
            f"{type(error).__name__}: {error}"
        ) from error
    factory = getattr(module, class_name, None)
    can_build = callable(factory)
    if not can_build:
        raise ValueError(f"agent {spec.text!r}: module {module_name!r} has no class {class_name!r}")
    try:
        signature = inspect.signature(factory)
    except ValueError:  # some classes written in C do not say what they take
        return _build(spec, class_name, factory, {})
    accepted = _accepted(signature, {"rules": rules, "seed": seed})
    try:
        signature.bind(**accepted)
    except TypeError as error:
        raise ValueError(
            f"agent {spec.text!r}: {class_name} must be built from rules= and seed= or from "
            f"nothing, but there is a {error}"
        ) from error
    return _build(spec, class_name, factory, accepted)


def _build(
    spec: Spec, class_name: str, factory: Callable[..., object], keywords: dict[str, Any]
) -> object:
    try:
        return factory(**keywords)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"agent {spec.text!r}: building {class_name} fails with {type(error).__name__}: {error}"
        ) from error


def _accepted(signature: inspect.Signature, offered: dict[str, Any]) -> dict[str, Any]:
    """The offered keywords that a signature takes by name."""
    parameters = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return offered
    by_name = {
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return {key: value for key, value in offered.items() if key in by_name}


#: Every kind of agent by the first word of its specs.
KINDS: Final = MappingProxyType(
    {
        "random": Kind("random", _build_random),
        "heuristic": Kind("heuristic", _build_heuristic, options=("endgame",)),
        "rdeep": Kind(
            "rdeep:samples=16,depth=4", _build_search, options=("samples", "depth", "threads")
        ),
        "pimc": Kind("pimc:worlds=20", _build_search, options=("worlds", "threads")),
        "ismcts": Kind(
            "ismcts:iterations=1000",
            _build_search,
            options=("iterations", "rollout", "threads", "exploration"),
        ),
        "ppo": Kind("ppo:path[,key=value]", _build_ppo, options=None, has_target=True),
        "rllib": Kind(
            "rllib:path[,policy=name]",
            _build_rllib,
            options=("policy", "sample", "any_rules"),
            has_target=True,
        ),
        "onnx": Kind("onnx:file[,key=value]", _build_exported, options=None, has_target=True),
        "torchscript": Kind(
            "torchscript:file[,key=value]", _build_exported, options=None, has_target=True
        ),
        "python": Kind("python:module:Class", _build_python, has_target=True),
    }
)
