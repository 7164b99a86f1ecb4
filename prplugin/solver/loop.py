"""The one loop: step, measure, certify, stop. It knows no method.

**Standing still.** Where P has eigenvalues of modulus 1 other than 1 (a cycle, a star), rounding keeps the iterates
going round the solution: a step leaves an L1 error e of at most `noise`, they stay within noise / (1 - alpha) of x*,
and so does their change, which is 1 / (1 - alpha) times too much for the bound. But the mean z of N iterates
x_1 ... x_N has

    G z - z = (x_(N+1) - x_1) / N - mean(e),

so that with N = 8 / (1 - alpha) its residual is at most 1.25 * noise, and what is left of 2 * alpha**k at the first of
them. One step from z then proves every tolerance down to `Certificate.provable` = 5 * noise / (1 - alpha), on any
graph; lower ones are refused before the first step.

**Leaps.** For a proved error, windows of plain steps are extrapolated: see `prplugin.numerics.extrapolation` and
`_Leaps`. A step that finds by itself where more of its like lead does that instead (`ForesightStep`). Either way a
plain step proves what comes of it, and passes over the edges that a leap took count as steps. A step that launches many
mixes by itself between plain ones (`LaunchStep.advance`).

**In less precision first.** A step that is faster with contributions in float32 begins so, for ranks that are wanted in
float32, and for any whose error is to be proved, under a certificate of its own that counts those roundings too. Exact
steps bring ||y - x|| down by alpha at least. Once a step does not bring it below (1 + alpha) / 2 of what it was, or
brings it down to what roundings change, float64 takes over. So it does where a rule is met that no proof stands behind:
iterates in float32 may stand still while exact steps from there would not.

**A certified order.** Where the order of the highest ranks is asked for, the loop looks at the ranks now and then, and
stops where the bound that is proved so far proves it: see `prplugin.solver.top_k` and `_Looks`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

from prplugin.cpu.sums import total
from prplugin.errors import InvalidOptionError
from prplugin.methods.base import Ending, ForesightStep, GpuStep, LaunchStep, SpreadStep, Step, Sums, begins_in_float32
from prplugin.numerics.extrapolation import WINDOW, Window
from prplugin.options import Options, proves
from prplugin.solver.certificate import Certificate
from prplugin.solver.host_window import HostWindow
from prplugin.solver.top_k import Equal, least_gap, order_of
from prplugin.types.edges import Floats
from prplugin.types.order import Order

__all__ = [
    "Outcome",
    "goal_in_float32",
    "iterate",
    "step_budget",
    "threshold",
]

MANY = 150
"""Steps left from which leaps are worth their windows: docs/decisions/0007-extrapolate.md."""

FEW = 2
"""Steps left from which another look ahead is worth its passes."""

MOST = 1000
"""Passes over the edges that one look ahead may take."""

LOOK = 1 / 4
"""Of the bound at one look at the order, that at the next, at the least: a look takes as long as a step or less."""

BEYOND = 1 / 100
"""Of the least gap that is seen, how far a leap has to be worth it: gaps may yet shrink, and steps slow down."""

ROUNDINGS = 1 / 4
"""Of what roundings to float32 can change a step by, at the most, what they do change it by, about."""


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
    order : Order, optional
        Of the highest of `ranks`, if it was to be certified.
    """

    ranks: Floats
    converged: bool
    iterations: int
    error_bound: float
    order: Order | None = None


def iterate(  # noqa: PLR0915
    step: Step,
    start: Floats | float,
    certificate: Certificate,
    options: Options,
    budget: int,
    watch: Callable[[int, float], object],
    equal: Equal | None = None,
) -> Outcome:
    """Apply `step` until the stopping rule of `options` is met or `budget` steps are spent.

    Parameters
    ----------
    start : array of n float64, of sum 1, or 1 / n for all
    watch : function
        Called after each step with the count of steps and the error bound.
    equal : function
        Proves that vertices have equal ranks: see `prplugin.solver.top_k.order_of`. None: no order is to be certified.
    """
    done = 0
    looks = _Looks(options, equal)
    if budget > 1 and begins_in_float32(step, options):
        outcome = _in_float32(step, start, certificate, options, budget - 1, watch, looks)
        if outcome.converged:
            return outcome
        ranks, done = outcome.ranks, outcome.iterations
        # Roundings to float32 may have brought the sum past what the certificate of float64 allows for.
        ranks /= _sum_of(step)(ranks)
        step.contribute_in("float64")
        step.start(ranks)
        del outcome, ranks  # makes room
    else:
        step.start(start)
    if budget == 0:
        ranks = step.ranks().copy()
        bound = certificate.of_start(step().change)
        met = options.stop == "error" and bound <= options.tol
        return Outcome(ranks, met, 0, bound, looks.last(ranks, certificate, bound))
    # A budget of the user's counts every step; one that the contraction gave is for the steps in float64.
    last = budget if options.max_iter is not None else budget + done
    settled = done + certificate.steps(options.tol) if proves(options) else last
    mean = _Mean(math.ceil(8 / (1 - certificate.alpha)))
    goal_change = _goal(options, certificate)
    walk, ahead, change = _Walk(step, looks.goal(certificate, goal_change)), 1, math.inf
    leap_goal = looks.leap_goal(certificate, goal_change)
    leaps = _leaps(step, certificate.alpha, leap_goal, WINDOW - done) if proves(options) else None
    iterations, advances = done, True
    while True:
        iterations += 1
        limit = max(1, min(settled, last) - iterations + 1)
        if advances and walk.goal is not None and iterations < settled and _advances(step, options):
            sums, taken = _advanced(step, walk.goal, limit, iterations - 1, certificate, watch)
            iterations += taken - 1
            advances = sums.change <= walk.goal  # else it is at rounding level
            settled += step.lost
            last += step.lost if options.max_iter is None else 0
        else:
            sums = walk(ahead, limit if leaps is None else min(limit, leaps.horizon))
        bound = certificate.of_step(sums.change)
        watch(iterations, bound)
        value, goal = _rule(options, sums, bound, certificate.n)
        # tol=0 asks for the k-th iterate, also of an iteration that stands still before.
        met = value <= goal or (not walk.waiting and looks.prove(step, certificate, bound))
        if (met and options.tol > 0) or iterations == last:
            walk.end()
            ranks = step.ranks()
            return Outcome(ranks, met, iterations, bound, looks.last(ranks, certificate, bound))
        # Nothing is decided before the last of the steps that have been taken.
        left = 0.0 if walk.waiting else _left(change, sums.change, value, max(goal, looks.aim))
        walk.goal = looks.goal(certificate, goal_change)
        if iterations >= settled:
            if mean.complete(step.ranks()):
                step.start(mean.take())
        elif leaps is not None:
            leaps.goal = looks.leap_goal(certificate, goal_change)
            further = 0.0 if walk.waiting else _left(change, sums.change, value, max(goal, BEYOND * looks.aim))
            # What a leap has cost: the contraction needs as many more.
            passes, lost = leaps.look(sums.change, further, last - iterations if options.max_iter is not None else MOST)
            iterations += passes
            settled += passes + lost
            last += passes + lost if options.max_iter is None else 0
        # As many at once as are sure to be needed, or nearly: half of those left.
        ahead = int(left / 2) if options.tol > 0 else last - iterations
        change = sums.change


def _in_float32(
    step: GpuStep,
    start: Floats | float,
    certificate: Certificate,
    options: Options,
    budget: int,
    watch: Callable[[int, float], object],
    looks: _Looks,
) -> Outcome:
    """Iterate with contributions in float32 as long as that helps."""
    step.contribute_in("float32")
    rough = certificate.for_chain(step.chain)
    step.start(start)
    end, stall = _goal(options, rough), (1 + rough.alpha) / 2
    if end is not None and options.stop == "error":
        end = goal_in_float32(end, rough, certificate, options.tol)
    walk, ahead, change = _Walk(step, looks.goal(rough, end), stall), 1, math.inf
    iterations = 0
    while iterations < budget:
        if walk.goal is not None and _advances(step, options):
            sums, taken = _advanced(step, walk.goal, budget - iterations, iterations, rough, watch)
            iterations += taken
            change = math.inf if sums.change <= walk.goal else 0.0  # else it is at rounding level
        else:
            sums = walk(ahead, budget - iterations)
            iterations += 1
        bound = rough.of_step(sums.change)
        watch(iterations, bound)
        value, goal = _rule(options, sums, bound, certificate.n)
        met = value <= goal or (not walk.waiting and looks.prove(step, rough, bound))
        left = 0.0 if walk.waiting else _left(change, sums.change, value, max(goal, looks.aim))
        walk.goal = looks.goal(rough, end)
        if met or sums.change >= stall * change or (end is not None and sums.change <= end):
            break
        ahead = int(left / 2)
        change = sums.change
    walk.end()
    proved = met and options.stop == "error"
    ranks = step.ranks()
    return Outcome(ranks, proved, iterations, bound, looks.last(ranks, rough, bound) if proved else None)


def _advances(step: Step, options: Options) -> TypeGuard[LaunchStep]:
    """Say whether the step mixes by itself."""
    return proves(options) and isinstance(step, LaunchStep)


def _advanced(
    step: LaunchStep,
    goal: float,
    limit: int,
    done: int,
    certificate: Certificate,
    watch: Callable[[int, float], object],
) -> tuple[Sums, int]:
    """Let a step advance; give what its last iteration measured, and how many it took. All but the last are watched."""
    taken = step.advance(goal, limit)
    for nth, sums in enumerate(step.measured[:-1], start=done + 1):
        watch(nth, certificate.of_step(sums.change))
    return step.measured[-1], taken


class _Looks:
    """Looks at the order of the highest ranks, where it is to be certified, whenever it may be proved.

    A bound proves it that is less than the gaps between them, about. They are known after a look, but not well as long
    as the bound is much larger: so the next look is due when the bound has come down to the least of them, or before.

    Attributes
    ----------
    aim : float
        The bound that is wanted, about, as far as the gaps are known; 0 if none is.
    """

    def __init__(self, options: Options, equal: Equal | None) -> None:
        self._k, self._equal = options.top, equal
        self._order: Order | None = None
        self._due = self.aim = 0.0 if equal is None else 1.0

    def prove(self, step: Step, certificate: Certificate, bound: float) -> bool:
        """Say whether a step's ranks have a proved order, by the bound on all errors together."""
        if self._k is None or self._equal is None or bound > self._due:
            return False
        ranks = step.ranks()
        margin = certificate.of_vertex(bound, total(ranks))
        gap = least_gap(ranks, self._k, margin)
        if gap > 2 * margin:
            self._order = order_of(ranks, self._k, margin, self._equal)
            if self._order.proved:
                return True
            gap = 0.0  # what seems to be equal is not proved to be
        self._due, self.aim = max(gap, LOOK * bound), gap
        return False

    def last(self, ranks: Floats, certificate: Certificate, bound: float) -> Order | None:
        """Give the order of the ranks that the loop ends with."""
        if self._k is None or self._equal is None or (self._order is not None and self._order.proved):
            return self._order
        return order_of(ranks, self._k, certificate.of_vertex(bound, total(ranks)), self._equal)

    def goal(self, certificate: Certificate, goal: float | None) -> float | None:
        """Give what a step changes for a look to be due, or for the rule to be met if that is more."""
        return goal if self._equal is None or goal is None else max(goal, certificate.change_for(self._due))

    def leap_goal(self, certificate: Certificate, goal: float | None) -> float | None:
        """Give what a step is to change after a leap."""
        return goal if self._equal is None or goal is None else max(goal, certificate.change_for(self.aim))


class _Leaps:
    """Leaps ahead where many steps are left, and back where a leap was not worth it.

    A leap counts if the step after it changes no more than a plain step would have, alpha times the change before: so
    the k-th change is at most 2 * alpha**k still, failed leaps and what leaps took aside. After a leap that does not
    count, or none where one was looked for, twice as many steps as before are left alone.

    Steps may be taken `horizon` at a time: within as many it does not leap.

    Parameters
    ----------
    rest : int
        Steps to leave alone first; one at least.

    Attributes
    ----------
    goal : float, optional
        What a step is to change in the end.
    """

    goal: float | None = None

    def __init__(self, step: Step, alpha: float, rest: int) -> None:
        self._step, self._alpha = step, alpha
        self._back: tuple[Floats, float] | None = None
        self.rest, self._pause = max(1, rest), WINDOW

    @property
    def horizon(self) -> float:
        """How many steps may be taken before it has to look at the last of them."""
        return math.inf if self._back is None else 1

    def look(self, change: float, left: float, limit: int) -> tuple[int, int]:
        """Take what the last step changed, and leap if it is time.

        Parameters
        ----------
        left : float
            How many plain steps are left, about; 0 where some after this one have been taken.
        limit : int
            How many passes over the edges a leap may take at most.

        Returns
        -------
        passes : int
            How many it took.
        lost : int
            1 if the last step was of no use, else 0.
        """
        back, self._back = self._back, None
        if back is not None:
            if not change <= self._alpha * back[1]:
                self._step.start(back[0])
                self._wait()
                return 0, 1
            self._landed(change / back[1])
        del back  # the next leap has its memory
        return self._onward(change, left, limit), 0

    def _landed(self, part: float) -> None:
        """Note that a leap counted, after which a step changed that part of what the one before had."""
        self._pause = WINDOW

    def _onward(self, change: float, left: float, limit: int) -> int:
        """Leap if it is time; say how many passes it took."""
        raise NotImplementedError

    def _leap(self, ranks: Floats, before: Floats, change: float) -> None:
        self._back = before, change
        self._step.start(ranks)

    def _wait(self) -> None:
        self.rest = self._pause
        self._pause *= 2


class _WindowLeaps(_Leaps):
    """Leaps by extrapolating windows of plain steps: see `prplugin.numerics.extrapolation`."""

    def __init__(self, step: Step, alpha: float, rest: int) -> None:
        super().__init__(step, alpha, rest)
        self._window: Window | None = None

    @property
    def horizon(self) -> float:
        return super().horizon if self._window is None or self._back is not None else self._window.left

    def _onward(self, change: float, left: float, limit: int) -> int:
        if self._window is None:
            self.rest -= 1
            if self.rest == 0:
                self._window = _window(self._step) if left > MANY else None
                self.rest = max(WINDOW, int(left))
            return 0
        self._window.add(self._step.ranks())
        if self._window.left == 0:
            before = self._window.last
            ranks = self._window.leap()
            if ranks is None:
                self._wait()
            else:
                self._leap(ranks, before, change)
                self._window.restart(ranks)
        return 0

    def _wait(self) -> None:
        super()._wait()
        self._window = None


class _ForesightLeaps(_Leaps):
    """Leaps to where a step sees that more of its like would lead."""

    def __init__(self, step: ForesightStep, alpha: float, goal: float) -> None:
        super().__init__(step, alpha, 1)
        self._foresight, self.goal, self._worth = step, goal, step.foresee()
        self._passes = 0

    def _landed(self, part: float) -> None:
        if part > self._alpha**self._passes:
            self._wait()
        else:
            super()._landed(part)

    def _onward(self, change: float, left: float, limit: int) -> int:
        assert self.goal is not None
        self.rest = max(1, self.rest - 1)
        if self._passes:
            # A leap's end says nothing of the pace of plain steps, but that alpha is the slowest.
            left = math.log(self.goal / change) / math.log(self._alpha) if 0 < self.goal < change else 0.0
        if self.rest > 1 or left < (FEW if self._passes else self._worth) or limit < 2:
            return 0
        before = self._step.ranks()  # a step that starts anew does so in memory of its own
        ranks, self._passes = self._foresight.foreseen(self.goal, limit - 1)
        self._leap(ranks, before, change)
        return self._passes


def _leaps(step: Step, alpha: float, goal: float | None, rest: int) -> _Leaps | None:
    """Say how a step may leap."""
    if isinstance(step, ForesightStep) and goal is not None:
        return _ForesightLeaps(step, alpha, goal)
    return _WindowLeaps(step, alpha, rest) if _may_leap(step) else None


def _may_leap(step: Step) -> bool:
    """Say whether windows of the step's iterates can be had: in host memory."""
    return not isinstance(step, GpuStep)


def _window(step: Step) -> Window:
    """Begin a window."""
    return HostWindow(step.ranks(), step if isinstance(step, SpreadStep) else None)


class _Walk:
    """Steps looked at one by one, though a GPU may have been given several at once.

    To look at a step is to wait for it. Should a step meet the rule when others after it are done, the walk goes back.

    Parameters
    ----------
    goal : float, optional
        A step that changes no more is worth a look. None: what a step changes does not say.
    stall : float
        So is one that changes at least so many times what the one before it did.
    """

    def __init__(self, step: Step, goal: float | None, stall: float = math.inf) -> None:
        self._step, self.goal, self._stall = step, goal, stall
        self._gpu = step if isinstance(step, GpuStep) else None
        self._launch = step if goal is not None and isinstance(step, LaunchStep) else None
        self._waiting: deque[Sums] = deque()
        self._given = 0

    def __call__(self, ahead: int, limit: float) -> Sums:
        """Take the next step; give what it measured.

        If none is waiting to be looked at, up to `ahead` are taken at once, and never more than `limit`; as many as
        that where a launch sees by itself when to end.
        """
        if not self._waiting:
            if self._launch is not None:
                assert self.goal is not None
                count = int(min(limit, self._launch.at_once))
                self._waiting.extend(self._launch.until(Ending(count, self.goal, self._stall)))
            elif self._gpu is not None and (given := int(min(ahead, limit, self._gpu.at_once))) > 1:
                self._waiting.extend(self._gpu.many(given))
            else:
                self._waiting.append(self._step())
            self._given = len(self._waiting)
        return self._waiting.popleft()

    @property
    def waiting(self) -> bool:
        """Whether steps were taken that nobody has looked at."""
        return bool(self._waiting)

    def end(self) -> None:
        """Leave the step at what was looked at last."""
        if self._waiting:
            assert self._gpu is not None
            self._gpu.rewind(self._given - len(self._waiting))


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


def _sum_of(step: Step) -> Callable[[Floats], float]:
    """Give what adds up a vector of ranks, of which the step may have but a part."""
    return (lambda ranks: float(step.add(total(ranks)))) if isinstance(step, SpreadStep) else total


def step_budget(certificate: Certificate, options: Options) -> int:
    """Give the number of steps allowed: `max_iter`, or as many as the contraction needs for the tolerance.

    Raises
    ------
    InvalidOptionError
        If no number of steps could prove the tolerance.
    """
    if proves(options) and not options.tol >= certificate.provable:
        raise InvalidOptionError(
            f"tol={options.tol:g} cannot be proved for this graph in {options.dtype} at alpha={options.alpha:g}, "
            f"for rounding: the least that can is {certificate.provable:.2g}. Ask for that or more"
            + (", or for dtype='float64'." if options.dtype == "float32" else ".")
        )
    if options.max_iter is not None:
        return options.max_iter
    if not proves(options):
        return certificate.moves(options.tol)
    # The steps that the contraction needs, those whose mean is taken, and one from the mean.
    return certificate.steps(options.tol) + math.ceil(8 / (1 - certificate.alpha)) + 1


def goal_in_float32(goal: float, rough: Certificate, certificate: Certificate, tol: float) -> float:
    """Give what a step may change, with contributions in float32, for float64 to take over if nothing is proved yet.

    That is `goal`, which proves the tolerance, unless roundings keep changes from becoming so small. What a ranking
    ends in, and with it the memory that it takes, is then known beforehand.
    """
    astray = ROUNDINGS * rough.noise
    # From the first on float64 needs a step, about; past the second, changes are but those of roundings.
    return goal if goal >= astray else max(certificate.change_for(tol), astray)


def _goal(options: Options, certificate: Certificate) -> float | None:
    """Give what a step may change, at most, to meet the rule; None if the rule does not go by that."""
    if options.tol == 0 or options.stop == "vertex":
        return None
    return certificate.change_for(options.tol) if options.stop == "error" else threshold(options, certificate.n)


def threshold(options: Options, n: int) -> float:
    """Return the most that the value of a `stop` rule without a proof may be to meet it."""
    # NetworkX compares with <, everything here with <=.
    return math.nextafter(n * options.tol, -math.inf) if options.stop == "networkx" else options.tol


def _rule(options: Options, sums: Sums, bound: float, n: int) -> tuple[float, float]:
    """Give what the stopping rule looks at, and what it is to come down to."""
    if options.stop == "error":
        return bound, options.tol
    return sums.largest if options.stop == "vertex" else sums.change, threshold(options, n)
