"""What callers hand to environments of many deals, checked: options, seeds, actions, buffers.

Letters in shapes: N rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from schnapsen_env.batch import Actions, Outputs, Rows
from schnapsen_env.cards import NUM_CARDS
from schnapsen_env.episode import Record, Settings, random_seed, seed_number, start
from schnapsen_env.integers import as_integer
from schnapsen_env.kept_state import form_of

#: The arrays that a caller may provide, and the field of :class:`~schnapsen_env.batch.Outputs` that
#: each one is.
BUFFERS: Final = {
    "observations": "observations",
    "action_masks": "masks",
    "rewards": "rewards",
    "terminals": "terminations",
    "truncations": "truncations",
    "to_play": "to_play",
}

#: The options of a first deal: for all rows alike, one entry a row, and the shape of an entry. A
#: position may be a text, a dict or an object, so nothing is said of its shape.
_DEAL_OPTIONS: Final[tuple[tuple[str, str, tuple[int, ...] | None], ...]] = (
    ("deck", "decks", (NUM_CARDS,)),
    ("forehand", "forehands", ()),
    ("position", "positions", None),
)


def whole_number(name: str, value: Any) -> int:
    """``value``, which is a whole number from 1.

    Raises:
        ValueError: it is not; the message has the ``name`` of the argument.
    """
    number = as_integer(value)
    if number is None or number < 1:
        raise ValueError(f"{name} is a whole number from 1, not {value!r}")
    return number


def check_buffers(buffers: Mapping[str, Any], own: Outputs) -> dict[str, npt.NDArray[Any]]:
    """The caller's arrays by field of :class:`~schnapsen_env.batch.Outputs`.

    Args:
        buffers: arrays by the names of :data:`BUFFERS`.
        own: arrays of the shapes and dtypes that are wanted.

    Raises:
        ValueError: an unknown name, or an array that does not fit.
    """
    checked: dict[str, npt.NDArray[Any]] = {}
    for name, buffer in buffers.items():
        if name not in BUFFERS:
            raise ValueError(f"buffers: {name!r} is unknown: choose from {', '.join(BUFFERS)}")
        wanted: npt.NDArray[Any] = getattr(own, BUFFERS[name])
        if not isinstance(buffer, np.ndarray):
            raise ValueError(f"buffers: {name} is a numpy array {form_of(wanted)}, not {buffer!r}")
        array = cast("npt.NDArray[Any]", buffer)
        if form_of(array) != form_of(wanted):
            raise ValueError(f"buffers: {name} is {form_of(wanted)}, not {form_of(array)}")
        if not array.flags.writeable or array.strides[-1] != array.itemsize:
            raise ValueError(f"buffers: {name} is read-only or has gaps in its last axis")
        checked[BUFFERS[name]] = array
    return checked


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """``dtype`` as numpy's float32 or uint8.

    Raises:
        ValueError: anything else.
    """
    try:
        known = np.dtype(dtype)
    except TypeError:
        known = None
    if known is None or known not in (np.dtype(np.float32), np.dtype(np.uint8)):
        name = dtype if known is None else known
        raise ValueError(f"dtype={name} is unknown: choose float32 or uint8")
    return known


def check_autoreset_mode(mode: Any) -> AutoresetMode:
    """``mode`` as a member of Gymnasium's enumeration, or by its value, such as ``"SameStep"``.

    Raises:
        ValueError: anything else; the modes are listed.
    """
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(f"AutoresetMode.{one.name} ({one.value!r})" for one in AutoresetMode)
        raise ValueError(f"autoreset_mode={mode!r} is unknown: choose one of {known}") from None


# ---------------------------------------------------------------------------------------- resets


def check_reset_mask(mask: Any, num_envs: int, *, is_dealt: bool) -> Rows:
    """The rows to reset, ``bool[N]``; all of them if ``mask`` is None.

    Args:
        mask: ``options["reset_mask"]``.
        num_envs: N.
        is_dealt: whether there has been a reset before.

    Raises:
        ValueError: not a bool array of length N with a True in it.
        ResetNeeded: a first reset has to be one of all rows.
    """
    if mask is None:
        return np.ones(num_envs, dtype=np.bool_)
    rows = np.asarray(mask)
    if rows.shape != (num_envs,) or rows.dtype != np.bool_ or not rows.any():
        raise ValueError(
            f"reset_mask must be a bool array of shape ({num_envs},) with a True in it, "
            f"not {mask!r}"
        )
    if not is_dealt and not rows.all():
        raise ResetNeeded("reset_mask before the first reset: call reset() for all rows first")
    return rows


def first_deals(options: Mapping[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """The options of each row as a single environment takes them.

    Args:
        options: of a reset, see :func:`~schnapsen_env.episode.check_options`.
        num_envs: N.

    Raises:
        ValueError: an option is given for all rows and for each, or has not one entry a row.
    """
    deals: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for one, many, shape in _DEAL_OPTIONS:
        if options.get(one) is not None and options.get(many) is not None:
            raise ValueError(f"options: give {one} for all rows or {many}, not both")
        if options.get(one) is not None:
            values = [options[one]] * num_envs
        elif options.get(many) is not None:
            values = _one_a_row(one, many, options[many], num_envs, shape)
        else:
            continue
        for deal, value in zip(deals, values, strict=True):
            if value is not None:
                deal[one] = value
    return deals


def start_row(
    row: int, record: Record | None, settings: Settings, seed: int | None, deal: Mapping[str, Any]
) -> Record:
    """:func:`~schnapsen_env.episode.start` in a row of a batch, which errors name."""
    try:
        return start(record, settings, seed, deal)
    except (ValueError, TypeError) as error:
        raise type(error)(f"row {row}: {error}") from error


def _one_a_row(
    one: str, many: str, values: Any, num_envs: int, shape: tuple[int, ...] | None
) -> Iterable[Any]:
    wanted = f"options: {many} must have shape {(num_envs, *(shape or ()))}, one {one} a row"
    length = _length_of(values)
    if length is None:
        raise ValueError(f"{wanted}, not {values!r}: give {one} for all rows alike")
    if length != num_envs:
        raise ValueError(f"{wanted}, not {_shape_of(values)}")
    if shape is not None:
        for row, value in enumerate(values):
            if value is not None and _shape_of(value) != shape:
                raise ValueError(f"{wanted}, but row {row} has shape {_shape_of(value)}")
    return values


def _length_of(values: Any) -> int | None:
    """The length of an array or a sequence; None for anything else.

    A dict and a text have a length too, but they may be one position.
    """
    if isinstance(values, str | bytes | Mapping):
        return None
    try:
        return len(values)
    except TypeError:  # an array without a dimension among others
        return None


def _shape_of(values: Any) -> tuple[int, ...]:
    """The shape; of nested sequences that make no array only the length."""
    try:
        return tuple(np.shape(values))
    except ValueError:
        return (len(values),)


def _is_list(seed: Any) -> TypeGuard[Sequence[int | None]]:
    """Whether it is one seed a row; an array without a dimension is one seed for all."""
    return isinstance(seed, Sequence) or (isinstance(seed, np.ndarray) and seed.ndim > 0)


def row_seeds(
    seed: int | Sequence[int | None] | None, num_envs: int, *, is_dealt: bool
) -> list[int | None]:
    """The seed of each row; None where the random stream goes on.

    Args:
        seed: row ``i`` gets ``seed + i``; or one seed (or None) a row.
        num_envs: N.
        is_dealt: whether there are streams that could go on; if not, seeds are drawn.

    Raises:
        TypeError: a seed is not an integer.
        ValueError: not N of them.
    """
    if seed is None:
        if is_dealt:
            return [None] * num_envs
        seed = random_seed()
    if not _is_list(seed):
        first = seed_number(seed)
        return [first + row for row in range(num_envs)]
    if len(seed) != num_envs:
        raise ValueError(f"{len(seed)} seeds do not fit {num_envs} rows")
    return [
        seed_number(one) if one is not None else None if is_dealt else random_seed() for one in seed
    ]


def first_seed(seed: int | Sequence[int | None] | None) -> int | None:
    """The first seed that is given, for what the rows share; None if none is.

    Args:
        seed: as for :func:`row_seeds`.

    Raises:
        TypeError: that seed is not an integer.
    """
    seeds = seed if _is_list(seed) else [seed]
    return next((seed_number(one) for one in seeds if one is not None), None)


# --------------------------------------------------------------------------------------- actions

#: The largest action that compiled code can read; it is none.
_LARGEST: Final = np.iinfo(np.int64).max


def check_actions(actions: npt.ArrayLike, num_envs: int) -> tuple[npt.NDArray[Any], Actions]:
    """The actions of a step: as given, for messages, and ``int64[N]``, for compiled code.

    Numbers beyond 64 bits with a sign become the largest one, so that they stay illegal.

    Raises:
        TypeError: they are not integers.
        ValueError: not one action a row.
    """
    given = np.asarray(actions)
    if given.shape != (num_envs,):
        raise ValueError(f"actions must have shape ({num_envs},), not {given.shape}")
    if given.dtype.kind not in "iu":
        raise TypeError(
            f"actions must be integers, not {given.dtype}: pass actions.astype(np.int64)"
        )
    small = np.minimum(given, _LARGEST) if given.dtype == np.uint64 else given
    return given, np.ascontiguousarray(small, dtype=np.int64)
