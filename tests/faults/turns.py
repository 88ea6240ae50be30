"""Runs imitated processes one at a time, and lets a seed decide who goes on after each step.

Every process is a real thread, because the code under test is ordinary blocking code. Only the
thread whose turn it is runs, so a seed always gives the same course of events.
"""

import random
import threading
from collections.abc import Callable


class Killed(BaseException):
    """Unwinds a killed process. It is no Exception, so the code under test lets it pass."""


class Actor:
    """An imitated process, or a thread of one."""

    def __init__(self, name: str, driver: int, body: Callable[[], None]) -> None:
        self.name, self.driver, self.body = name, driver, body
        self.killed = False
        self.done = False
        self.paused_until = 0
        self.error: BaseException | None = None
        self.judged = False
        """Whether the world has looked at its error."""
        self.turn = threading.Semaphore(0)


class Turns:
    """Gives turns to actors by chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.actors: list[Actor] = []
        self.now = 0
        """How many turns were given: the time of this world."""
        self._main = threading.Semaphore(0)
        self._here = threading.local()

    @property
    def current(self) -> Actor | None:
        """The actor that runs now; None outside of all actors."""
        return getattr(self._here, "actor", None)

    def add(self, actor: Actor) -> Actor:
        """A new actor, which gets its turns from now on."""
        self.actors.append(actor)
        threading.Thread(target=self._run, args=(actor,), daemon=True).start()
        return actor

    def give_way(self) -> None:
        """Called by an actor where another one may go on; raises if it was killed meanwhile."""
        actor = self.current
        if actor is None:
            return
        self._main.release()
        actor.turn.acquire()
        if actor.killed:
            raise Killed

    def step(self) -> bool:
        """Let one actor go on until it gives way or ends; False when none can."""
        waiting = [actor for actor in self.actors if not actor.done]
        if not waiting:
            return False
        ready = [one for one in waiting if one.paused_until <= self.now or one.killed]
        self.now += 1
        if not ready:
            self.now = min(one.paused_until for one in waiting)
            return True
        chosen = self.chance.choice(ready)
        chosen.turn.release()
        self._main.acquire()
        return True

    def kill(self, driver: int) -> None:
        """Kill all actors of a driver; they unwind at their next turn, without any effect."""
        for actor in self.actors:
            if actor.driver == driver:
                actor.killed = True

    def _run(self, actor: Actor) -> None:
        self._here.actor = actor
        actor.turn.acquire()
        try:
            if not actor.killed:
                actor.body()
        except BaseException as error:
            actor.error = error
        finally:
            actor.done = True
            self._main.release()
