"""What the search agents share: seeds, threads, and checks of what they are shown.

An answer depends on the seed, the rules and the position, and on nothing else: the random stream of
a decision starts from a hash of the seed, the observation and the mask. So a position gets the same
answer alone, in any batch, from any number of threads and at any time.
"""

from __future__ import annotations

import hashlib
import threading
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import ActionMask, Actions, BatchAgent, Observation
from agents.inputs import checked_inputs
from agents.limits import MOST_THREADS
from schnapsen_env.imagined import NO_SUCH_DEAL, NOTHING_LEGAL
from schnapsen_env.integers import as_integer
from schnapsen_env.rules import Rules, resolve_rules

Ints = npt.NDArray[np.int64]


class SearchAgent(BatchAgent):
    """An agent whose compiled code decides row by row.

    Args:
        rules: the rule set to be played.
        seed: where the agent's randomness starts.
        threads: threads that share the rows of a batch; the answers do not depend on it.

    Raises:
        ValueError: ``threads`` is not in 1-256, the seed is not an integer, or the rules are
            unknown.
    """

    #: What the agent is called in an error.
    name = "search"
    #: Rows that a thread takes at a time.
    rows_at_once = 1

    def __init__(
        self, rules: str | Rules = "pagat_auto", seed: int = 0, *, threads: int | str = 1
    ) -> None:
        self.rules = resolve_rules(rules)
        self.threads = check_number("threads", threads, MOST_THREADS)
        self._idle: list[Any] = []
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Start from another seed.

        Raises:
            ValueError: it is not an integer; a bool is none.
        """
        number = as_integer(seed)
        if number is None:
            raise ValueError(f"the seed of an agent is an integer, not {seed!r}: pass an int")
        self._seed = number % (1 << 64)

    @property
    def _codes(self) -> Ints:
        return self.rules.codes()

    def __getstate__(self) -> dict[str, Any]:
        # Working memory is large and holds nothing that lasts.
        return self.__dict__ | {"_idle": []}

    def act_batch(self, observations: Observation, action_masks: ActionMask) -> Actions:
        """The actions for many positions: ``float32[N, F]``, ``int8[N, 27]`` to ``int64[N]``.

        Raises:
            TypeError: an array is of another kind, see :func:`agents.inputs.checked_inputs`.
            ValueError: a shape or a number is wrong, likewise; a mask allows nothing or is not that
                of the agent's rules, or no deal looks like an observation.
        """
        inputs, masks = checked_inputs(self.name, observations, action_masks)
        out = np.empty(len(inputs), dtype=np.int64)
        chances = start_streams(self._seed, inputs, masks)

        def work(parts: Iterator[slice]) -> None:
            memory = self._take_memory()
            for part in parts:
                self._decide(memory, inputs[part], masks[part], chances[part], out[part])
            self._idle.append(memory)

        size = self.rows_at_once
        parts = [slice(first, first + size) for first in range(0, len(inputs), size)]
        workers = min(self.threads, len(parts))
        if workers <= 1:
            work(iter(parts))
        else:
            shared = _Shared(parts)
            with ThreadPoolExecutor(workers) as pool:
                try:
                    running = [pool.submit(work, iter(shared)) for _ in range(workers)]
                    wait(running, return_when=FIRST_EXCEPTION)
                finally:
                    # After an error, or Ctrl-C, the others stop after the part at hand.
                    shared.clear()
                for done in running:
                    done.result()
        if len(out) and out.min() < 0:
            row = int(np.flatnonzero(out < 0)[0])
            raise ValueError(complaint(int(out[row]), row, self.rules))
        return out

    def _take_memory(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return self._new_memory()

    @abstractmethod
    def _new_memory(self) -> Any:
        """What one thread needs to work."""

    @abstractmethod
    def _decide(
        self, memory: Any, observations: Observation, masks: ActionMask, chances: Ints, out: Actions
    ) -> None:
        """Write the action of each row, or the number of an error, into ``out``.

        Args:
            memory: from :meth:`_new_memory`; no other thread uses it now.
            observations: ``float32[n, F]``.
            masks: ``int8[n, 27]``.
            chances: ``int64[n]``, the state of a random generator for each row.
            out: ``int64[n]``.
        """


def complaint(error: int, row: int, rules: Rules) -> str:
    """The message for an error that :func:`schnapsen_env.imagined.find_error` has found."""
    if error == NOTHING_LEGAL:
        return (
            f"the mask of position {row} allows no action: the player is not to move, or the "
            "deal is over"
        )
    if error == NO_SUCH_DEAL:
        return (
            f"no deal looks like the observation of position {row}; it must be of the default "
            "layout: float32, memory='perfect', suits='natural', history=False"
        )
    return (
        f"the action mask of position {row} is not that of the rules {rules.name!r}, which this "
        "agent was made for: load it with rules= of the environment"
    )


class _Shared:
    """One list of parts from which several threads draw, each part going to one of them."""

    def __init__(self, parts: list[slice]) -> None:
        self._parts: Iterator[slice] = iter(parts)
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Leave nothing to draw."""
        with self._lock:
            self._parts = iter(())

    def __iter__(self) -> Iterator[slice]:
        while True:
            with self._lock:
                part = next(self._parts, None)
            if part is None:
                return
            yield part


def start_streams(seed: int, observations: Observation, masks: ActionMask) -> Ints:
    """The state of a random generator for each row, ``int64[N]``, from the seed and the row."""
    key = seed.to_bytes(8, "little")
    states = np.empty(len(observations), dtype=np.int64)
    for row, (observation, mask) in enumerate(zip(observations, masks, strict=True)):
        digest = hashlib.blake2b(observation.tobytes(), digest_size=8, key=key)
        digest.update(mask.tobytes())
        # The generator of a record stands still at 0.
        states[row] = int.from_bytes(digest.digest(), "little", signed=True) or 1
    return states


def check_number(name: str, value: Any, most: int) -> int:
    """``value`` as an integer of 1 to ``most``; it may be the text of one.

    Raises:
        ValueError: it is not; the message names the option and the range.
    """
    text = str(value)
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    if not 1 <= number <= most:
        raise ValueError(f"the option {name} is a whole number of 1 to {most:,}, not {text}")
    return number


def check_fraction(name: str, value: Any) -> float:
    """``value`` as a number above 0 and up to 100; it may be the text of one.

    Raises:
        ValueError: it is not; the message names the option and the range.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0.0 < number <= 100.0:
        raise ValueError(f"the option {name} is a number above 0 and up to 100, not {value}")
    return number
