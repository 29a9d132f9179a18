"""schedule.py - which command starts next: in the plan's order, as much at once as the processors
carry.

A part says how much of a processor one of its commands keeps busy (`load`: 1; less when it mostly
waits, more when it starts as many processes itself) and how many of them may run at once (`jobs`).
Nothing overtakes a command that waits for processors, so a heavy one gets its turn; a part that has
its `jobs` running lets those after it go first.
"""


class Schedule:
    def __init__(self, parts, cores):
        self._cores = cores
        self._waiting = [(part, list(part.commands)) for part in parts]
        self._running = {}  # part's name: how many of its commands
        self._busy = 0.0  # processors

    def _load(self, part):
        return min(part.load, self._cores)

    def start(self):
        """The next command and its part, now running; None when it has to wait, or none is left."""
        for part, commands in self._waiting:
            if not commands or self._running.get(part.name, 0) >= part.jobs:
                continue
            if self._busy > 0 and self._busy + self._load(part) > self._cores + 1e-9:
                return None
            self._running[part.name] = self._running.get(part.name, 0) + 1
            self._busy += self._load(part)
            return part, commands.pop(0)
        return None

    def end(self, part):
        """A command of the part has ended."""
        self._running[part.name] -= 1
        self._busy -= self._load(part)
        if not any(self._running.values()):
            self._busy = 0.0  # fractions leave no rest
