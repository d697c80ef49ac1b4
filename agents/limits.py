"""Numbers that agents, training, evaluation and export have in common."""

from __future__ import annotations

from typing import Final

#: The most threads that an agent or a training run may be told to use.
MOST_THREADS: Final = 256
#: The most different deals of one evaluation: the rows of both plays, 12 numbers each, take 2 GB,
#: and those of matches, with six deals each, six times as much.
MOST_PAIRS: Final = 10_000_000
#: Logit of a masked action. Its probability is exactly 0 in float32, and unlike minus infinity it
#: leaves products with that probability 0 rather than not-a-number.
MASKED_LOGIT: Final = -1e8
