"""Everything that a training run can be told, a sentence for each field.

A configuration file is YAML with these names as keys. What it leaves out keeps the default, and the
command line overrides both. A configuration holds no derived values: what follows from others is a
property.
"""

from __future__ import annotations

import difflib
import math
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from agents.files import replace_text
from agents.limits import MOST_PAIRS, MOST_THREADS
from agents.ppo.errors import ConfigError
from schnapsen_env.rules import resolve_rules


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of a PPO run.

    Raises:
        ConfigError: a value is outside its range.
    """

    # ---------------------------------------------------------------------------------- the run
    run_dir: str = "runs/ppo"
    """Folder for checkpoints, logs and the final evaluation; it must not hold another run."""
    seed: int = 1
    """Where all randomness of the run starts: initial weights, cards, actions, minibatches."""
    total_timesteps: int = 6_000_000
    """Decisions to be made, by all players together; rounded up to whole iterations."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the network lives; auto takes a GPU if torch finds one."""
    torch_threads: int = 1
    """Threads of torch; beside other work on the same machine a second one is often slower."""
    amp: Literal["none", "bf16", "auto"] = "none"
    """Arithmetic of the network: float32, or bfloat16 by autocast; auto takes it if it is fast."""

    # --------------------------------------------------------------------------------- the game
    rules: str = "duel"
    """The rule set that is played: a name, also with changes as in duel,must_beat:True."""
    suits: Literal["natural", "trump_first", "canonical"] = "canonical"
    """How suits are named for the network; canonical makes 24 equal deals look the same."""

    # ---------------------------------------------------------------------------- the opponents
    opponents: tuple[str, ...] = ()
    """Agents that play one seat in a share of the deals, by their specs; "past" is an earlier self.
    With none the policy plays both seats of every deal."""
    opponent_share: float = 0.25
    """Share of the deals in which one of these plays a seat, each of them in equally many."""
    past_selves: int = 16
    """Earlier selves that are kept to choose from."""
    past_interval: int = 2_000_000
    """Decisions between two of them."""
    random_openings: float = 0.0
    """Share of the deals that open with up to twelve random actions, to learn from any position."""

    # ------------------------------------------------------------------------------ the network
    initial_weights: str = ""
    """A checkpoint, of whatever rules, with whose weights the run begins; none draws them."""
    hidden_sizes: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers, which policy and value share."""
    critic: Literal["shared", "state"] = "shared"
    """What estimates values in training: the policy's own network, or one that sees all cards."""
    critic_hidden_sizes: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of the critic that sees all cards."""

    # --------------------------------------------------------------------------------- rollouts
    num_envs: int = 1024
    """Deals that are played at the same time (N)."""
    num_steps: int = 32
    """Decisions in each of them between two updates (T)."""
    gamma: float = 1.0
    """Discount; 1 because a deal is short and what counts is its game points."""
    gae_lambda: float = 0.97
    """Decay of generalised advantage estimation: 0 trusts the values, 1 the results."""
    exact_endgames: bool = False
    """Take the values of positions without a talon from the solver, which knows them exactly."""

    # ---------------------------------------------------------------------------------- updates
    update_epochs: int = 2
    """How often each iteration goes through its N * T decisions."""
    minibatch_size: int = 1024
    """Decisions in one gradient step; larger ones take as long and learn less in short runs."""
    learning_rate: float = 1e-3
    """Adam's step size at the start."""
    learning_rate_final: float = 5e-5
    """Adam's step size at the end; it changes linearly between the two."""
    adam_eps: float = 1e-5
    """Adam's epsilon."""
    clip_coef: float = 0.2
    """How far the probability of an action may move before its gradient is cut off."""
    clip_vloss: bool = False
    """Also clip how far the value may move from its estimate at collection."""
    norm_adv: bool = True
    """Scale the advantages of each minibatch to mean 0 and standard deviation 1."""
    vf_coef: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """The gradient is scaled down to this length if it is longer."""
    target_kl: float | None = None
    """Stop the epochs of an iteration once approx_kl exceeds this; none never stops."""

    # ------------------------------------------------------------------------------ exploration
    ent_coef: float = 0.03
    """Weight of the entropy bonus at the start."""
    ent_coef_final: float = 0.005
    """Weight of the entropy bonus at the end; it changes linearly between the two."""
    uniform_kl_coef: float = 0.06
    """a in the weight a * (1 - t)^2 + b of KL(uniform || policy) over the legal actions, where t
    runs from 0 to 1. It keeps rare actions such as closing alive."""
    uniform_kl_floor: float = 0.002
    """b in the same weight: what is left of it at the end."""
    magnet_coef: float = 0.0
    """Weight of KL(policy || magnet), where the magnet is a slow copy of the policy; 0 for none."""
    magnet_rate: float = 0.02
    """How far the weights of the magnet move towards the policy's after each iteration."""

    # --------------------------------------------------------------------- watching and keeping
    eval_interval: int = 1_000_000
    """Decisions between two evaluations during training; 0 for none."""
    eval_deals: int = 500
    """Different deals in each of them and against each opponent, each played twice."""
    final_eval_deals: int = 2_000
    """The same for the evaluation at the end; 0 for none."""
    checkpoint_interval: int = 2_000_000
    """Decisions between two checkpoints; the last iteration and Ctrl-C always write one."""
    keep_checkpoints: int = 3
    """Checkpoints to keep, the newest ones; 0 keeps all."""
    log_interval: int = 1
    """Iterations between two lines of the log."""
    tensorboard: bool = True
    """Write TensorBoard files beside metrics.jsonl."""

    def __post_init__(self) -> None:
        try:
            resolve_rules(self.rules)
        except ValueError as error:
            raise ConfigError(f"rules: {error}") from None
        for name in _POSITIVE:
            self._require(name, getattr(self, name) > 0, "must be more than 0")
        for name in _NOT_NEGATIVE:
            self._require(name, getattr(self, name) >= 0, "must not be negative")
        for field in fields(self):
            value = getattr(self, field.name)
            finite = not isinstance(value, float) or math.isfinite(value)
            self._require(field.name, finite, "must be finite")
            is_real = isinstance(value, float) or isinstance(field.default, float)
            most = _LARGEST if is_real else _MOST
            small = not isinstance(value, (int, float)) or field.name == "seed" or value <= most
            self._require(field.name, small, f"must be at most {most:g}")
        threads = self.torch_threads <= MOST_THREADS
        self._require("torch_threads", threads, f"must be at most {MOST_THREADS}")
        for name in ("gamma", "gae_lambda", "opponent_share", "random_openings", "magnet_rate"):
            self._require(name, 0 <= getattr(self, name) <= 1, "must lie between 0 and 1")
        for name in ("hidden_sizes", "critic_hidden_sizes"):
            sizes = getattr(self, name)
            self._require(name, bool(sizes), "needs one layer or more")
            widths = all(0 < width <= _WIDEST for width in sizes)
            self._require(name, widths, f"needs widths from 1 to {_WIDEST}")
        self._require("run_dir", "\0" not in self.run_dir, "must not hold the character 0")
        if isinstance(self.opponents, str):
            raise ConfigError(f"opponents={self.opponents!r}: it must be a list of texts")
        rows, kinds = round(self.opponent_share * self.num_envs), len(self.opponents)
        self._require(
            "opponent_share",
            rows >= 2 * kinds,
            f"gives {rows} of {self.num_envs} deals to {kinds} opponents, and each needs two, "
            "one a seat",
        )
        self._require("target_kl", self.target_kl is None or self.target_kl > 0, "must be positive")
        enough = self.eval_deals >= 2 or self.eval_interval == 0
        self._require("eval_deals", enough, "must be 2 or more, or eval_interval 0")
        self._require("final_eval_deals", self.final_eval_deals != 1, "must be 0, or 2 or more")
        for name in ("eval_deals", "final_eval_deals"):
            self._require(name, getattr(self, name) <= MOST_PAIRS, f"must be at most {MOST_PAIRS}")
        self._require("num_steps", self.batch_size > 1, "must be 2 or more with num_envs=1")
        fits = self.minibatch_size <= self.batch_size and self.batch_size % self.minibatch_size == 0
        self._require(
            "minibatch_size",
            fits,
            f"must divide num_envs * num_steps = {self.batch_size} without rest",
        )

        shared = self.critic == "shared" and not self.exact_endgames
        # The value to stay near would be another one than the network's own.
        self._require(
            "clip_vloss", shared or not self.clip_vloss, "needs critic=shared, no exact_endgames"
        )
        self._require(
            "gamma", self.gamma == 1 or not self.exact_endgames, "must be 1 with exact_endgames"
        )
        spread = self.minibatch_size > 1 or not self.norm_adv
        self._require("minibatch_size", spread, "must be 2 or more with norm_adv")

    def _require(self, name: str, holds: bool, wish: str) -> None:
        if not holds:
            raise ConfigError(f"{name}={getattr(self, name)!r}: it {wish}")

    @property
    def batch_size(self) -> int:
        """Decisions of one iteration, N * T."""
        return self.num_envs * self.num_steps

    @property
    def num_iterations(self) -> int:
        """Iterations of the whole run."""
        return math.ceil(self.total_timesteps / self.batch_size)


#: What :attr:`Config.opponents` calls an earlier self of the learning policy.
PAST: Final = "past"
_WIDEST: Final = 8192
#: Of any whole number but the seed; what is larger is a slip.
_MOST: Final = 10**15
#: What the network can compute with.
_LARGEST: Final = 3e38
_POSITIVE: Final = (
    "total_timesteps torch_threads num_envs num_steps update_epochs minibatch_size learning_rate "
    "adam_eps clip_coef max_grad_norm checkpoint_interval log_interval past_selves past_interval"
).split()
_NOT_NEGATIVE: Final = (
    "seed learning_rate_final vf_coef ent_coef ent_coef_final uniform_kl_coef uniform_kl_floor "
    "magnet_coef eval_interval eval_deals final_eval_deals keep_checkpoints"
).split()

#: What a continued run cannot be told anew: the network, the deals and the count of decisions would
#: not fit any more. Anything else may be changed, and with no change a run goes on exactly.
FIXED_ON_RESUME: Final = (
    "seed rules suits hidden_sizes critic critic_hidden_sizes num_envs num_steps initial_weights"
).split()


# ------------------------------------------------------------------------- reading and checking


def config_from_dict(values: Mapping[str, Any], source: str = "config") -> Config:
    """A configuration from plain values, such as those of a YAML file.

    Args:
        values: field name to value; a list will do for a tuple, an int for a float.
        source: what an error calls the origin of the values.

    Raises:
        ConfigError: an unknown name (the nearest one is given), a value of another type, or a value
            outside its range.
    """
    hints = get_type_hints(Config)
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name not in hints:
            near = difflib.get_close_matches(str(name), hints, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f": choose from {', '.join(hints)}"
            raise ConfigError(f"{source}: there is no setting {name!r}{hint}")
        try:
            checked[name] = _convert(value, hints[name])
        except TypeError:
            raise ConfigError(
                f"{source}: {name} must be {_type_text(hints[name])}, "
                f"not {value!r} ({type(value).__name__})"
            ) from None
    try:
        return Config(**checked)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def config_to_dict(config: Config) -> dict[str, Any]:
    """The configuration as plain values that JSON and YAML can hold."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    return {
        name: list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def read_config(path: Path, base: Config | None = None) -> Config:
    """The configuration in a YAML file.

    Args:
        path: the file.
        base: has what the file leaves out; the defaults if None.

    Raises:
        ConfigError: no such file, no valid YAML, or a setting that is refused.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {path}: {error}") from error
    try:
        values = yaml.load(text, Loader=_yaml_loader())  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold 'name: value' lines, not {type(values).__name__}")
    rest = {} if base is None else config_to_dict(base)
    return config_from_dict(rest | cast("dict[str, Any]", values), source=str(path))


def write_config(config: Config, path: Path) -> None:
    """Write the configuration as YAML that :func:`read_config` reads."""
    import yaml

    replace_text(path, yaml.safe_dump(config_to_dict(config), sort_keys=False))


def _yaml_loader() -> Any:
    """PyYAML's safe loader, but reading 5e-4 as a number and refusing a key given twice."""
    import yaml

    safe_loader: Any = yaml.SafeLoader

    class Loader(safe_loader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key.value, str):
                    raise yaml.constructor.ConstructorError(
                        None, None, "the name of a setting is a text", key.start_mark
                    )
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} is given twice", key.start_mark
                    )
                seen.add(key.value)
            return safe_loader.construct_mapping(self, node, deep)

    # YAML 1.1, which PyYAML reads, wants a dot in every float; YAML 1.2 and people do not.
    number = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9]*)?[eE][-+]?[0-9]+")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789"))
    return Loader


def _convert(value: Any, hint: Any) -> Any:
    """``value`` as the type ``hint``; TypeError if it is of another."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        if isinstance(value, str) and value in arguments:
            return value
    elif origin in (Union, types.UnionType):
        if value is None:
            return None
        return _convert(value, arguments[0])
    elif origin is tuple:
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return tuple(_convert(item, arguments[0]) for item in items)
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool) and _fits(value):
            return float(value)
    elif type(value) is hint:
        return value
    raise TypeError


def _fits(value: float) -> bool:
    """Whether a number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of some hundred digits
        return False


def _type_text(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin in (Union, types.UnionType):
        return f"{_type_text(arguments[0])} or null"
    if origin is tuple:
        return "a list of texts" if arguments[0] is str else "a list of whole numbers"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[hint]
