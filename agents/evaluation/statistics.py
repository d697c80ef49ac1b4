"""Estimates with 95 % intervals. The unit is the *pair*: one deal (or match), played twice.

The two plays of a pair share their cards, so they are not independent and must not be counted as
two. Every function here takes one number for each of ``n`` pairs and treats only the pairs as
independent.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

#: Half the width of a 95 % interval in standard errors.
Z95: Final = 1.96
#: Differences below this share of the largest possible one are rounding.
_ROUNDING: Final = 1e-9
#: With fewer the spread between them may be far too small by chance.
_FEW_PAIRS: Final = 30


Floats = npt.NDArray[np.float64]


class Mean(NamedTuple):
    """An estimate, and half the width of its 95 % interval."""

    value: float
    ci95: float


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, ``+0.250``; without a minus before what is rounded to 0."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


class Rate(NamedTuple):
    """A share between 0 and 1, and its 95 % interval, which need not be symmetric."""

    value: float
    low: float
    high: float


def mean_interval(values: npt.ArrayLike, most: float = 0.0) -> Mean:
    """The mean of ``values`` (``float[n]``) with the half width ``1.96 * s / sqrt(n)``.

    ``s`` is the sample standard deviation with ``n - 1``. This is the interval of the normal
    approximation, for instance in Wasserman, "All of Statistics" (2004), section 6.3.2.

    Args:
        values: one for each pair.
        most: the largest absolute value that is possible, if the interval is to allow for what has
            not been seen, see :func:`standard_error`.

    Raises:
        ValueError: fewer than two values.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"an interval needs two values or more, not shape {array.shape}")
    if not most:
        return Mean(float(array.mean()), Z95 * standard_error(array))
    common = float(np.median(array))
    error = standard_error(array, array - common, most + abs(common))
    return Mean(float(array.mean()), Z95 * error)


def standard_error(values: Floats, away: Floats | None = None, farthest: float = 0.0) -> float:
    """The standard error of the mean of ``float64[n]``, with an allowance for what was not seen.

    Where nearly all pairs come out alike, the spread of the few others says little: there could as
    well have been none of them, or more. So ``(z * d / (n + z^2))^2`` is added to ``s^2 / n``,
    where ``z`` is 1.96 and ``d`` is the distance, in quadratic mean, of the others from what is
    common, with one more of them at the distance ``farthest``. If all pairs are alike, the interval
    is that of :func:`unseen_share` of them lying there; if few are, the addition does not matter.
    The allowance is a choice of ours. In trials (``tests/test_evaluation.py``) such intervals cover
    the truth in 95 of 100 cases or more, with one pair that differs among hundreds as with many.

    Args:
        values: one for each pair.
        away: ``float64[n]``, how far each pair is from what is common; None for no allowance.
        farthest: how far one can be.
    """
    count = len(values)
    variance = float(values.var(ddof=1)) / count
    if away is not None:
        others = away[np.abs(away) > _ROUNDING * farthest]  # rounding is no difference
        square = (float(others @ others) + farthest**2) / (len(others) + 1)
        variance += Z95**2 * square / (count + Z95**2) ** 2
    return math.sqrt(variance)


def unseen_share(trials: float) -> float:
    """What share at most, with 95 % confidence, has a property that none of ``trials`` had."""
    return wilson_interval(0.0, trials).high


def ratio_interval(
    numerators: npt.ArrayLike, denominators: npt.ArrayLike, most: float = 0.0
) -> Mean:
    """``sum(numerators) / sum(denominators)`` with a 95 % half width; both ``float[n]``.

    For figures per deal where pairs hold different numbers of deals, as matches do. The variance is
    the one of the ratio estimator in Cochran, "Sampling Techniques" (3rd ed. 1977), section 6.4,
    without the correction for a finite population. With equal denominators this is
    :func:`mean_interval` of the quotients.

    Args:
        numerators: of each pair.
        denominators: of each pair.
        most: the largest absolute quotient that is possible, as in :func:`mean_interval`.

    Raises:
        ValueError: different shapes, fewer than two pairs, or denominators that sum to 0.
    """
    top = np.asarray(numerators, dtype=np.float64)
    bottom = np.asarray(denominators, dtype=np.float64)
    if top.shape != bottom.shape:
        raise ValueError(f"shapes differ: {top.shape} and {bottom.shape}")
    if bottom.sum() == 0:
        raise ValueError("the denominators sum to 0")
    ratio = float(top.sum() / bottom.sum())
    if top.ndim != 1 or top.size < 2:
        raise ValueError(f"an interval needs two pairs or more, not shape {top.shape}")
    bounds = (-most, most) if most else None
    return Mean(ratio, Z95 * _ratio_error(top, bottom, ratio, bounds))


def _ratio_error(
    top: Floats, bottom: Floats, ratio: float, bounds: tuple[float, float] | None
) -> float:
    """The standard error of the ratio of the sums, ``float64[n]`` each.

    ``bounds`` are those of a quotient, for the allowance of :func:`standard_error`; None for none.
    """
    # What each pair has beyond the common ratio; the error of their mean is that of the ratio.
    residuals = (top - ratio * bottom) / bottom.mean()
    if bounds is None:
        return standard_error(residuals)
    # Pairs of different sizes are alike if they have one quotient. Those of size 0 tell nothing,
    # and the others count for more by as much.
    sized = bottom > 0
    common = float(np.median(top[sized] / bottom[sized]))
    away = (top - common * bottom) / bottom.mean()
    size = float(bottom[sized].mean() / bottom.mean())
    low, high = bounds
    return standard_error(residuals, away, max(common - low, high - common) * size)


def wilson_interval(share: float, trials: float) -> Rate:
    """The score interval for a share of independent trials.

    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    Unlike the normal interval it has a width at 0 and 1, and stays inside them.

    Raises:
        ValueError: ``share`` outside 0 to 1, or ``trials`` not positive.
    """
    if not 0 <= share <= 1 or not trials > 0:
        raise ValueError(f"no interval for a share of {share} of {trials} trials")
    weight = Z95**2 / trials
    centre = (share + weight / 2) / (1 + weight)
    half = math.sqrt(share * (1 - share) * weight + weight**2 / 4) / (1 + weight)
    # Rounding must not leave a share of exactly 0 or 1 outside its own interval.
    return Rate(share, min(max(0.0, centre - half), share), max(min(1.0, centre + half), share))


def rate_interval(
    successes: npt.ArrayLike, trials: npt.ArrayLike, *, paired: bool = False
) -> Rate | None:
    """The share ``sum(successes) / sum(trials)``; both ``float[n]``. None without any trial.

    The interval is Wilson's, with the number of trials replaced by the effective number: as many
    independent trials as would give the standard error that :func:`ratio_interval` finds between
    pairs. Korn and Graubard, "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data", Survey Methodology 24 (1998); they take no more
    than the real number of trials, and so does this function.

    Args:
        successes: of each pair.
        trials: of each pair, 0 allowed.
        paired: the plays of a pair balance each other by design, as wins with swapped seats do.
            Then the effective number may be larger than the real one, from 30 pairs on: a few that
            happen to balance say little. It follows from the error that allows for pairs that were
            not seen, see :func:`standard_error`. It is not for rare events: one success and one
            failure in a single pair would look like certainty.

    Raises:
        ValueError: different shapes or fewer than two pairs.
    """
    total = float(np.sum(trials))
    if total == 0:
        return None
    share, ci95 = ratio_interval(successes, trials)
    if share in (0.0, 1.0):  # no spread to see: fall back on the real number
        return wilson_interval(share, total)
    error = ci95 / Z95
    effective = min(share * (1 - share) / error**2 if error > 0 else math.inf, total)
    if paired and np.size(trials) >= _FEW_PAIRS:
        top = np.asarray(successes, dtype=np.float64)
        bottom = np.asarray(trials, dtype=np.float64)
        error = _ratio_error(top, bottom, share, (0.0, 1.0))
        # Only where the plays do balance; otherwise Wilson's interval makes allowance enough.
        effective = max(effective, share * (1 - share) / error**2)
    return wilson_interval(share, effective)
