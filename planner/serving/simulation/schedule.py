"""The schedule: admit, run prompts with or between decode steps, jump over pure decoding.

State is the clock, the steps so far, the sequences that decode and the sum of their contexts, a
heap of the steps at which they end, the queue, and the prompts that are part done. While nothing
arrives and nothing ends, decode steps differ in their context alone, and are taken at once: k steps
from context C take k·x(B) + s(B)·Σ y(C + j), y being nearly linear over a jump.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil

import numpy as np

from planner.roofline import Array
from planner.serving.simulation.policy import Policy
from planner.serving.simulation.tables import StepTables

LONGEST_JUMP = 256
"""Steps taken at once, over which y is taken as linear [-]."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Times of requests, in the order in which they came; arrays of shape (request,)."""

    arrived_s: Array
    first_token_s: Array
    """Time to the first token after the arrival [s]."""
    e2e_s: Array
    """Time to the last token after the arrival [s]."""
    outputs: Array
    """Output tokens [token]."""
    ended_s: float
    """Clock at the end [s]."""

    @property
    def tpot_s(self) -> Array:
        """Mean time between tokens of each request [s]; that of one token is nought."""
        return np.asarray((self.e2e_s - self.first_token_s) / np.maximum(self.outputs - 1.0, 1.0))


@dataclass(slots=True, eq=False)
class Prompt:
    """A request whose prompt is not all done."""

    request: int
    done: int
    """Tokens behind it, cached ones included [token]."""
    isl: int
    osl: int
    attention_s: float
    """Attention of the whole prompt over the square of its length [s/token²]."""


class Replica:
    """One replica under requests that come in ascending order, or when others end."""

    def __init__(self, tables: StepTables, policy: Policy, clients: int | None = None) -> None:
        """Take step times and policy; `clients` makes the loop closed: the next request of the list
        comes when one of the clients' ends."""
        self.tables = tables
        self.policy = policy
        self.clients = clients

    def run(self, arrivals_s: Array, isl: Array, osl: Array) -> Outcome:
        """Return the times of requests; in a closed loop `arrivals_s` are think times.

        Arrays of shape (request,): seconds, tokens, tokens.
        """
        state = _State(self, arrivals_s, isl, osl)
        state.run()
        return Outcome(
            arrived_s=np.array(state.arrived),
            first_token_s=np.array(state.first),
            e2e_s=np.array(state.ended),
            outputs=np.asarray(osl, float),
            ended_s=state.now,
        )


class _State:
    """The state of a run; what is read in every step lies in plain lists."""

    def __init__(self, replica: Replica, arrivals_s: Array, isl: Array, osl: Array) -> None:
        self.tables, self.policy = replica.tables, replica.policy
        count = len(isl)
        self.isl, self.osl = [int(n) for n in isl], [int(n) for n in osl]
        attention = self.tables.attention_of(np.asarray(isl, float)) / np.asarray(isl, float) ** 2
        self.attention = attention.tolist()
        self.given = [float(s) for s in arrivals_s]
        self.arrived, self.first, self.ended = [0.0] * count, [0.0] * count, [0.0] * count
        self.began = [0.0] * count
        self.closed = replica.clients is not None
        self.arrivals: list[tuple[float, int]] = []
        self.next = 0
        for _ in range(min(replica.clients or 0, count)):
            self._come(0.0)
        self.now, self.steps = 0.0, 0
        self.held_since = 0
        self.batch, self.cached = 0, 0.0
        self.used = 0.0
        self.ends: list[tuple[int, int]] = []
        self.queue: deque[int] = deque()
        self.prompts: list[Prompt] = []

    def _come(self, now: float) -> None:
        """Let the next client of a closed loop come after its think time."""
        if self.next < len(self.isl):
            heappush(self.arrivals, (now + self.given[self.next], self.next))
            self.next += 1

    def run(self) -> None:
        """Run until all requests have ended."""
        while True:
            self._take_arrivals()
            self._admit()
            if self.prompts and not self._held():
                self._prompt_step()
            elif self.batch:
                self._jump()
            else:
                coming = self._coming()
                if coming is None:
                    return
                self.now = max(self.now, coming)

    def _coming(self) -> float | None:
        """Return when the next request comes; None where none does."""
        if self.closed:
            return self.arrivals[0][0] if self.arrivals else None
        return self.given[self.next] if self.next < len(self.given) else None

    def _take_arrivals(self) -> None:
        now, queue = self.now, self.queue
        if self.closed:
            while self.arrivals and self.arrivals[0][0] <= now:
                at, request = heappop(self.arrivals)
                self.arrived[request] = at
                queue.append(request)
            return
        given, count = self.given, len(self.given)
        while self.next < count and given[self.next] <= now:
            self.arrived[self.next] = given[self.next]
            queue.append(self.next)
            self.next += 1

    def _needs(self, request: int) -> float:
        return self.isl[request] + self.policy.output_reserved * self.osl[request]

    def _has_room(self, request: int) -> bool:
        running = self.batch + len(self.prompts)
        if not running:
            return True  # one request is always let in
        policy = self.policy
        return (
            running < policy.most_sequences
            and self.used + self._needs(request) <= policy.cache_tokens
        )

    def _admit(self) -> None:
        queue, hit = self.queue, self.policy.prefix_hit
        while queue and self._has_room(queue[0]):
            request = queue.popleft()
            self.used += self._needs(request)
            isl = self.isl[request]
            cached = min(int(isl * hit), isl - 1)
            if not self.prompts:
                self.held_since = self.steps
            self.prompts.append(
                Prompt(request, cached, isl, self.osl[request], self.attention[request])
            )

    def _held(self) -> bool:
        """Return whether prompts wait for others, so that every rank has one."""
        policy = self.policy
        if policy.ranks == 1 or not policy.hold_steps or len(self.prompts) >= policy.ranks:
            return False
        if not self.batch or any(prompt.done for prompt in self.prompts):
            return False
        return self.steps < self.held_since + policy.hold_steps

    def _prompt_step(self) -> None:
        """Run one step that carries prompts, with what decodes where the engine mixes."""
        tables, policy = self.tables, self.policy
        beside = ceil(self.batch * policy.queries / policy.ranks) if policy.mixes else 0
        budget = max(policy.step_tokens - beside, 1)
        loads, attention = [0] * policy.ranks, [0.0] * policy.ranks
        done: list[Prompt] = []
        for prompt in self.prompts:
            rank = loads.index(min(loads)) if policy.ranks > 1 else 0
            chunk = min(prompt.isl - prompt.done, budget - loads[rank])
            if chunk <= 0:
                break
            loads[rank] += chunk
            end = prompt.done + chunk
            attention[rank] += prompt.attention_s * (end * end - prompt.done * prompt.done)
            prompt.done = end
            if end >= prompt.isl:
                done.append(prompt)
        line = tables.linear_s
        added = line[max(loads) + beside] - line[beside] + max(attention) + tables.overhead_s
        held = added / policy.stages
        if policy.mixes and self.batch:
            self.now += tables.step_s(self.batch, self.cached / self.batch)
            self._advance(1)
        self.now += held
        self._end()
        for prompt in done:
            self._first_token(prompt, added - held)
        if done:
            self.prompts = [prompt for prompt in self.prompts if prompt.done < prompt.isl]

    def _first_token(self, prompt: Prompt, later_s: float) -> None:
        request, policy = prompt.request, self.policy
        waited = self.now - self.arrived[request] + later_s
        if policy.ahead_steps and self.batch:
            waited += policy.ahead_steps * self.tables.step_s(self.batch, self.cached / self.batch)
        self.first[request] = (waited + policy.first_s) * policy.scale
        self.began[request] = self.now
        if prompt.osl <= 1:
            self._leave(request)
            return
        self.batch += 1
        self.cached += prompt.isl + 1
        heappush(self.ends, (self.steps + self._steps(request), request))

    def _steps(self, request: int) -> int:
        """Return the steps of a request after its first token, the last in part [-]."""
        return ceil((self.osl[request] - 1) / self.policy.tokens_per_step)

    def _advance(self, steps: int) -> None:
        """Take decode steps: every sequence is longer by what each yields."""
        self.steps += steps
        self.cached += self.batch * steps * self.policy.tokens_per_step

    def _end(self) -> None:
        """Let go what has ended."""
        ends = self.ends
        while ends and ends[0][0] <= self.steps:
            _, request = heappop(ends)
            self.batch -= 1
            self.cached -= (
                self.isl[request] + 1 + self._steps(request) * self.policy.tokens_per_step
            )
            self._leave(request)
        if not self.batch:
            self.cached = 0.0

    def _leave(self, request: int) -> None:
        self.used -= self._needs(request)
        self.ended[request] = self.first[request] + self.now - self.began[request]
        if self.closed:
            self._come(self.now)

    def _jump(self) -> None:
        """Take decode steps until a sequence ends or a request comes that there is room for."""
        tables, batch = self.tables, self.batch
        steps = min(self.ends[0][0] - self.steps, LONGEST_JUMP)
        if self.prompts:
            steps = min(steps, self.held_since + self.policy.hold_steps - self.steps)
        context, grows = self.cached / batch, self.policy.tokens_per_step
        first = tables.step_s(batch, context)
        last = tables.step_s(batch, context + (steps - 1) * grows) if steps > 1 else first
        taken = steps * (first + last) / 2
        coming = self._coming()
        if coming is not None and coming < self.now + taken and self._could_join():
            left = coming - self.now
            slope = (last - first) / (steps - 1) if steps > 1 else 0.0
            steps = max(1, min(steps, steps_within(left, first, slope)))
            taken = steps * first + slope * steps * (steps - 1) / 2
        self.now += taken
        self._advance(steps)
        self._end()

    def _could_join(self) -> bool:
        request = self.arrivals[0][1] if self.closed else self.next
        return not self.queue and self._has_room(request)


def steps_within(left: float, first: float, slope: float) -> int:
    """Return the steps that end at or after `left` [s], the n-th taking first + n·slope [s]."""
    steps = ceil(left / first)
    if slope > 0:
        half = first / slope - 0.5
        steps = ceil((half * half + 2 * left / slope) ** 0.5 - half)
    return max(steps, 1)
