"""The one loop: step, measure, certify, stop. It knows no method.

**Standing still.** Where P has eigenvalues of modulus 1 other than 1 (a cycle, a star), rounding keeps the iterates
going round the solution: a step leaves an L1 error e of at most `noise`, they stay within noise / (1 - alpha) of x*,
and so does their change, which is 1 / (1 - alpha) times too much for the bound. But the mean z of N iterates
x_1 ... x_N has

    G z - z = (x_(N+1) - x_1) / N - mean(e),

so that with N = 8 / (1 - alpha) its residual is at most 1.25 * noise, and what is left of 2 * alpha**k at the first of
them. One step from z then proves every tolerance down to `Certificate.provable` = 5 * noise / (1 - alpha), on any
graph; lower ones are refused before the first step.

**Leaps.** For a proved error, windows of plain steps are extrapolated: see `prplugin.extrapolate` and `_Leaps`.

**In less precision first.** For ranks that are wanted in float32, a step that can hold its contributions in float32
does so, under a certificate of its own that counts those roundings too. Exact steps bring ||y - x|| down by alpha at
least. Once a step does not bring it below (1 + alpha) / 2 of what it was, only rounding can be why, and float64 takes
over. So it does where a rule is met that no proof stands behind: iterates in float32 may stand still while exact steps
from there would not.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from prplugin.certificate import Certificate
from prplugin.errors import InvalidOptionError
from prplugin.extrapolate import WINDOW, Extrapolation
from prplugin.graph.edges import Floats
from prplugin.methods import GpuStep, Step, Sums
from prplugin.options import Options
from prplugin.problem import normalised

__all__ = ["Outcome", "iterate", "step_budget"]

MANY = 150
"""Steps left from which leaps are worth their windows: docs/decisions/0007-extrapolate.md."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the loop ended.

    Attributes
    ----------
    ranks : array of n float64
    converged : bool
        Whether the stopping rule was met.
    iterations : int
        Steps from the start to `ranks`.
    error_bound : float
        Proved: the L1 distance of `ranks`, scaled and cast as asked, to the exact PageRank is no more.
    """

    ranks: Floats
    converged: bool
    iterations: int
    error_bound: float


def iterate(
    step: Step,
    start: Floats,
    certificate: Certificate,
    options: Options,
    budget: int,
    watch: Callable[[int, float], object],
) -> Outcome:
    """Apply `step` until the stopping rule of `options` is met or `budget` steps are spent.

    Parameters
    ----------
    start : array of n float64, of sum 1
    watch : function
        Called after each step with the count of steps and the error bound.
    """
    done = 0
    if options.dtype == "float32" and options.tol > 0 and budget > 1 and isinstance(step, GpuStep):
        outcome = _in_float32(step, start, certificate, options, budget - 1, watch)
        if outcome.converged:
            return outcome
        # Roundings to float32 may have brought the sum past what the certificate of float64 allows for.
        (start, _), done = normalised(outcome.ranks), outcome.iterations
        step.contribute_in("float64")
    step.start(start)
    if budget == 0:
        bound = certificate.of_start(step().change)
        return Outcome(start, options.stop == "error" and bound <= options.tol, 0, bound)
    # A budget of the user's counts every step; one that the contraction gave is for the steps in float64.
    last = budget if options.max_iter is not None else budget + done
    settled = done + certificate.steps(options.tol) if _proves(options) else last
    mean = _Mean(math.ceil(8 / (1 - certificate.alpha)))
    walk, ahead, change = _Walk(step), 1, math.inf
    leaps = _Leaps(step, certificate.alpha) if _proves(options) and not isinstance(step, GpuStep) else None
    for iterations in count(done + 1):
        sums = walk(min(ahead, min(settled, last) - iterations + 1))
        bound = certificate.of_step(sums.change)
        watch(iterations, bound)
        value, goal = _rule(options, sums, bound, start.size)
        # tol=0 asks for the k-th iterate, also of an iteration that stands still before.
        met = value <= goal
        if (met and options.tol > 0) or iterations == last:
            walk.end()
            return Outcome(step.ranks(), met, iterations, bound)
        left = _left(change, sums.change, value, goal)
        if iterations >= settled:
            if mean.complete(step.ranks()):
                step.start(mean.take())
        elif leaps is not None and not leaps.look(sums.change, left):
            # A step that a failed leap has cost: the contraction needs as many more.
            settled += 1
            last += options.max_iter is None
        # As many at once as are sure to be needed, or nearly: half of those left.
        ahead = int(left / 2) if options.tol > 0 else last - iterations
        change = sums.change
    raise AssertionError("unreachable")


def _in_float32(
    step: GpuStep,
    start: Floats,
    certificate: Certificate,
    options: Options,
    budget: int,
    watch: Callable[[int, float], object],
) -> Outcome:
    """Iterate with contributions in float32 as long as that helps."""
    step.contribute_in("float32")
    rough = certificate.for_chain(step.chain)
    step.start(start)
    walk, ahead, change = _Walk(step), 1, math.inf
    for iterations in range(1, budget + 1):
        sums = walk(min(ahead, budget - iterations + 1))
        bound = rough.of_step(sums.change)
        watch(iterations, bound)
        value, goal = _rule(options, sums, bound, start.size)
        # What a step in float64 from here would prove, were its change no larger.
        enough = options.stop == "error" and certificate.of_step(sums.change) <= options.tol
        met = value <= goal
        if met or enough or sums.change >= (1 + rough.alpha) / 2 * change:
            break
        ahead = int(_left(change, sums.change, value, goal) / 2)
        change = sums.change
    walk.end()
    return Outcome(step.ranks(), met and options.stop == "error", iterations, bound)


class _Leaps:
    """Leaps ahead by extrapolation where many steps are left, and back where a leap was not worth it.

    A leap counts if the step after it changes no more than a plain step would have, alpha times the change before: so
    the k-th change is at most 2 * alpha**k still, failed leaps aside. After a window without a leap that counts, twice
    as many steps as before are left alone.
    """

    def __init__(self, step: Step, alpha: float) -> None:
        self._step, self._alpha = step, alpha
        self._window: Extrapolation | None = None
        self._back: tuple[Floats, float] | None = None
        self._rest = self._pause = WINDOW

    def look(self, change: float, left: float) -> bool:
        """Take what the last step changed, and leap if it is time; say whether the step was of use.

        Parameters
        ----------
        left : float
            How many plain steps are left, about.
        """
        back, self._back = self._back, None
        if back is not None:
            if change > self._alpha * back[1]:
                self._step.start(back[0])
                self._wait()
                return False
            self._pause = WINDOW
        if self._window is not None:
            self._window.add(self._step.ranks())
            if self._window.full:
                self._leap(self._window, change)
        elif self._rest > 0:
            self._rest -= 1
        elif left > MANY:
            self._window = Extrapolation(self._step.ranks())
        return True

    def _leap(self, window: Extrapolation, change: float) -> None:
        before = window.last
        ranks = window.leap()
        if ranks is None:
            self._wait()
            return
        self._back = before, change
        self._step.start(ranks)
        window.restart(ranks)

    def _wait(self) -> None:
        self._window, self._rest = None, self._pause
        self._pause *= 2


class _Walk:
    """Steps looked at one by one, though a GPU may have been given several at once.

    To look at a step is to wait for it. Should a step meet the rule when others after it are done, the walk goes back.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._waiting: deque[Sums] = deque()
        self._given = 0

    def __call__(self, ahead: int) -> Sums:
        """Take the next step, and if none is waiting to be looked at, up to `ahead` at once; give what it measured."""
        if not self._waiting:
            if isinstance(self._step, GpuStep) and (given := min(ahead, self._step.at_once)) > 1:
                self._waiting.extend(self._step.many(given))
                self._given = given
            else:
                self._waiting.append(self._step())
        return self._waiting.popleft()

    def end(self) -> None:
        """Leave the step at what was looked at last."""
        if self._waiting:
            assert isinstance(self._step, GpuStep)
            self._step.rewind(self._given - len(self._waiting))


def _left(before: float, change: float, value: float, goal: float) -> float:
    """Give how many steps a value is away from its goal, at the pace at which the change falls; 0 if none is seen."""
    if not (0 < change < before < math.inf and 0 < goal < value < math.inf):
        return 0.0
    return (math.log(goal) - math.log(value)) / math.log(change / before)


class _Mean:
    """The mean of some iterates: their first, plus the mean of what they differ by, which loses nothing to rounding."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._first: Floats | None = None

    def complete(self, ranks: Floats) -> bool:
        """Add an iterate; say whether it was the last."""
        if self._first is None:
            self._first, self._sum, self._count = ranks.copy(), 0 * ranks, 1
        else:
            self._sum += ranks - self._first
            self._count += 1
        return self._count == self._size

    def take(self) -> Floats:
        """Give the mean, and begin anew."""
        assert self._first is not None
        mean = self._first + self._sum / self._size
        self._first = None
        return mean


def step_budget(certificate: Certificate, options: Options) -> int:
    """Give the number of steps allowed: `max_iter`, or as many as the contraction needs for the tolerance.

    Raises
    ------
    InvalidOptionError
        If no number of steps could prove the tolerance.
    """
    if _proves(options) and not options.tol >= certificate.provable:
        raise InvalidOptionError(
            f"tol={options.tol:g} cannot be proved for this graph in {options.dtype} at alpha={options.alpha:g}, "
            f"for rounding: the least that can is {certificate.provable:.2g}. Ask for that or more"
            + (", or for dtype='float64'." if options.dtype == "float32" else ".")
        )
    if options.max_iter is not None:
        return options.max_iter
    if not _proves(options):
        return certificate.moves(options.tol)
    # The steps that the contraction needs, those whose mean is taken, and one from the mean.
    return certificate.steps(options.tol) + math.ceil(8 / (1 - certificate.alpha)) + 1


def _proves(options: Options) -> bool:
    return options.stop == "error" and options.tol > 0


def _rule(options: Options, sums: Sums, bound: float, n: int) -> tuple[float, float]:
    """Give what the stopping rule looks at, and what it is to come down to."""
    match options.stop:
        case "error":
            return bound, options.tol
        case "delta":
            return sums.change, options.tol
        case "vertex":
            return sums.largest, options.tol
        case "networkx":
            return sums.change, n * options.tol
