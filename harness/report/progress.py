"""The progress of a run on a terminal: a bar, with the counts of runs by verdict, the rate and the remaining time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from harness.settings import is_ci_machine
from harness.time.real import real

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

Clock = Callable[[], float]

_WINDOW_S: Final = 30.0
"""The rate is measured over this many last seconds, since some suites are slower than others."""
_SAMPLE_S: Final = 0.5
_RATE_AFTER_S: Final = 3.0
_REDRAW_S: Final = 0.05
_REDRAWS_PER_S: Final = 4
"""Redraws of the bar per second while calls of real systems are under way, and no run ends."""
_LINE_EVERY_S: Final = 30.0
_BAR: Final = 20
_WIDE: Final = 80
"""Minimum columns of a terminal to show the bar."""


class Pace:
    """Counts runs as they end, and estimates the remaining time from the most recent ones."""

    def __init__(self, total: int, clock: Clock = real.monotonic) -> None:
        self.total, self.ended = total, 0
        self._verdicts = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
        self._clock = clock
        self._samples = deque[tuple[float, int]]()

    def add(self, verdict: str) -> None:
        """Count a run that has ended."""
        self.ended += 1
        self._verdicts[verdict] += 1
        now = self._clock()
        if not self._samples:  # start after the first run, which imports modules
            self._samples.append((now, 1))
        elif now - self._samples[-1][0] >= _SAMPLE_S:
            self._samples.append((now, self.ended))
            while now - self._samples[1][0] >= _WINDOW_S:
                self._samples.popleft()

    @property
    def facts(self) -> dict[str, str]:
        """Texts to show, in order: `count`, each verdict, `rate`, `left`."""
        count = f"{self.ended:,} of {self.total:,}"
        verdicts = {verdict: f"{number:,} {verdict}" for verdict, number in self._verdicts.items() if number}
        return {"count": count, **verdicts, **self._rate()}

    def _rate(self) -> dict[str, str]:
        """Return the rate and the remaining time, once enough runs have ended."""
        then, before = self._samples[0] if self._samples else (self._clock(), 0)
        seconds, runs = self._clock() - then, self.ended - before
        if seconds < _RATE_AFTER_S or not runs:
            return {}
        rate = runs / seconds
        shown = f"{_number(rate)}/s" if rate >= 1 else f"{_number(rate * 60)}/min"
        left = (self.total - self.ended) / rate
        return {"rate": shown} | ({"left": f"{duration(left)} left"} if left else {})


class Progress:
    """Shows the progress of a run. Call `add` for each run that has ended, and `stop` before other output.

    `calls` returns a text about the calls of real systems.
    """

    def __init__(
        self,
        console: Console,
        total: int,
        clock: Clock = real.monotonic,
        *,
        calls: Callable[[], str] | None = None,
    ) -> None:
        self._console, self._clock, self._calls = console, clock, calls
        self._pace = Pace(total, clock)
        self._shown_at = clock()
        self._live: Live | None = None
        if total > 1 and console.is_terminal and not is_ci_machine():
            from rich.live import Live

            self._live = Live(
                console=console,
                auto_refresh=calls is not None,
                refresh_per_second=_REDRAWS_PER_S,
                transient=True,
                get_renderable=self._render,
            )
            self._live.start(refresh=True)

    @property
    def redraws(self) -> bool:
        """True if a bar is shown, so that runs that passed need no lines of their own."""
        return self._live is not None

    def add(self, verdict: str) -> None:
        """Count a run that has ended, and redraw."""
        self._pace.add(verdict)
        since = self._clock() - self._shown_at
        ended = self._pace.ended == self._pace.total
        if self._live is not None and (since >= _REDRAW_S or ended):
            self._live.refresh()
        elif self._live is None and since >= _LINE_EVERY_S and not ended:
            self._console.print(f"progress  {' · '.join(self._facts().values())}", soft_wrap=True)
        else:
            return
        self._shown_at = self._clock()

    def _facts(self) -> dict[str, str]:
        calls = self._calls() if self._calls is not None else ""
        return self._pace.facts | ({"calls": calls} if calls else {})

    def stop(self) -> None:
        """Remove the bar."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Hide the bar while something else uses the terminal."""
        if self._live is None:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)

    def _render(self) -> Text:
        """Return one line: the bar, and as many of the texts as fit."""
        from rich.text import Text

        facts, width = self._facts(), self._console.width
        bar = Text()
        if width >= _WIDE:
            full = _BAR * self._pace.ended // max(self._pace.total, 1)
            mark = "-" if self._console.options.ascii_only else "━"
            colour = "red" if {"failed", "error"} & facts.keys() else "green"
            bar = Text.assemble((mark * full, colour), (mark * (_BAR - full), "dim"), " ")
        room = width - len(bar) - 1
        for name in ("skipped", "passed", "rate"):  # the least important first
            if len(" · ".join(facts.values())) > room:
                facts.pop(name, None)
        line = bar + Text(" · ".join(facts.values()))
        line.truncate(width - 1)
        return line


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def duration(seconds: float) -> str:
    """Return a remaining time, rounded up.

    >>> duration(7.4), duration(80), duration(600), duration(8000)
    ('8 s', '1 min 20 s', '10 min', '2 h 14 min')
    """
    whole = int(seconds) + 1 if seconds % 1 else int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    minutes += rest > 0
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
