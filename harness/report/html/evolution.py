"""report.html of an evolution: the course of the fitness, the origin of the winner, and its confirmation.

It is made of what evolution.json and genomes.jsonl have (docs/evolution.md). Generations are numbered from 0 there,
and from 1 on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.draw.composition import geometry
from harness.graph.model import START
from harness.report.compare.text_diff import word_changes
from harness.report.encoding import replace
from harness.report.formatting import dollars, p_value, plural, score, with_interval
from harness.report.html.template import Scale, asset, policy, safe, template

MAX_DRAWN: Final = 24
"""The most ancestors in a picture. If there are more, it shows the line of first parents."""
_MARGIN: Final = 12

Genome = Mapping[str, Any]
"""A line of genomes.jsonl."""


def ancestors(genomes: Mapping[str, Genome], of: str) -> list[Genome]:
    """Return a genome and its ancestors, the oldest first."""
    found, waiting = dict[str, Genome](), [of]
    while waiting:
        name = waiting.pop()
        if name in genomes and name not in found:
            found[name] = genomes[name]
            waiting += genomes[name]["parents"]
    order = {name: at for at, name in enumerate(genomes)}
    return sorted(found.values(), key=lambda each: (each["generation"], order[each["id"]]))


def first_parents(genomes: Mapping[str, Genome], of: str) -> list[Genome]:
    """Return a genome, its first parent, that one's first parent, and so on, the oldest first."""
    found: dict[str, Genome] = {}
    name = of
    while name in genomes and name not in found:
        found[name] = genomes[name]
        name = next(iter(genomes[name]["parents"]), "")
    return [*found.values()][::-1]


def picture(drawn: Sequence[Genome]) -> dict[str, Any] | None:
    """Lay out these genomes as {width, height, margin, nodes, edges}, see `harness.draw.composition`.

    The label of the arrow from the first parent describes the change. None if there are fewer than two genomes.
    """
    if len(drawn) < 2:
        return None
    known = {each["id"] for each in drawn}
    nodes = [(each["id"], f"fitness {score(each['fitness'])}") for each in drawn]
    edges: list[tuple[str, str, str | None]] = []
    for each in drawn:
        parents = [name for name in each["parents"] if name in known]
        label = "; ".join(each["changes"]) or None
        edges += [(name, each["id"], label if at == 0 else None) for at, name in enumerate(parents)]
        if not parents:
            edges.append((START, each["id"], None))
    return {**geometry(nodes, edges), "margin": _MARGIN}


PAGE: Final = "report.html"
MAX_GENOMES: Final = 2_000
MAX_SCENARIOS: Final = 200
_WIDTH, _HEIGHT, _EDGE = 720, 220, 46
_SERIES: Final = ("best", "mean", "worst")
_NO_CHANGES: Final[Genome] = {"prompts": {}, "temperatures": {}, "tools": {}}
_FILES: Final = (
    ("winner.yaml", "the winner as a variants file, for harness score --variants"),
    ("winner.patch", "the changes of the winner to the files of the manifest"),
    ("confirmation", "the results of the confirmation runs"),
)
_STOPPED: Final = {
    "generations": "it ran through all generations",
    "budget": "its budget was spent",
    "no improvement": "nothing improved any more",
    "best possible": "no genome can be better",
    "interrupted": "it was interrupted",
}


@dataclass(frozen=True)
class Evolution:
    """An evolution: its search, as evolution.json has it, and its genomes by id, in order."""

    search: Mapping[str, Any]
    genomes: Mapping[str, Genome]

    @property
    def baseline(self) -> Genome:
        """The genome of the manifest itself; empty if it is not there."""
        return next((each for each in self.genomes.values() if each["origin"] == "baseline"), {})

    @property
    def winner(self) -> Genome | None:
        """The winner, if there is one."""
        return self.genomes.get(self.search["winner"] or "")


def write_evolution(folder: Path, search: Mapping[str, Any], genomes: Iterable[Genome]) -> Path:
    """Write report.html of an evolution into its folder, and return its path.

    Raises:
        FormatError: the page cannot be written.
    """
    file = folder / PAGE
    replace(file, _page(Evolution(search, {each["id"]: each for each in genomes}), folder).encode())
    return file


def _page(found: Evolution, folder: Path) -> str:
    search, genomes, winner = found.search, found.genomes, found.winner
    line = ancestors(genomes, winner["id"]) if winner else []
    drawn = line if len(line) <= MAX_DRAWN or winner is None else first_parents(genomes, winner["id"])
    ancestry = {each["id"] for each in line}
    listed = _bounded([*genomes.values()], ancestry)
    return template("evolution.html").render(
        policy=policy(asset("style.css")),
        style=safe(asset("style.css")),
        headline=headline(found),
        state=_state(search["confirmation"]),
        facts=_facts(found),
        search=search,
        winner=winner,
        beside=[(name, text) for name, text in _FILES if (folder / name).exists()],
        confirmation=_confirmation(search["confirmation"]),
        chart=_chart(found),
        line=line,
        picture=picture(drawn[-MAX_DRAWN:]),
        drawn=len(drawn[-MAX_DRAWN:]),
        prompts=_prompts(found),
        settings=_settings(found),
        scenarios=_scenarios(found.baseline, winner or {}),
        most_scenarios=MAX_SCENARIOS,
        genomes=listed,
        left_out=len(genomes) - len(listed),
        ancestry=ancestry,
        numbers={name: at for at, name in enumerate(genomes)},
    )


def headline(found: Evolution) -> str:
    """Return the result in a sentence. Only a winner confirmed on held-out scenarios is called better."""
    search, genome = found.search, found.winner
    winner, confirmation = search["winner"], search["confirmation"]
    if search["stopped"] is None:
        return f"The search has not ended: {plural(len(found.genomes), 'genome')} so far"
    if genome is None or genome["origin"] == "baseline":
        return "Nothing better than the manifest was found"
    if confirmation is None:
        return f"{winner} is the best of {plural(len(found.genomes), 'genome')}, and not confirmed"
    held = plural(confirmation["scenarios"], "held-out scenario")
    if confirmation["verdict"] in ("better", "worse"):
        return f"{winner} is {confirmation['verdict']} than the manifest on {held}"
    return f"{winner} is not shown to be better than the manifest on {held}"


def _state(confirmation: Mapping[str, Any] | None) -> str:
    verdict = None if confirmation is None else confirmation["verdict"]
    return {"better": "passed", "worse": "failed"}.get(verdict or "", "open")


def _facts(found: Evolution) -> list[str]:
    search = found.search
    facts = [search["manifest"], plural(len(search["generations"]), "generation")]
    facts.append(plural(len(found.genomes), "genome"))
    facts.append(f"{search['spent']['calls']:,} calls of models, {dollars(search['spent']['cost'])}")
    if (mutator := search["mutator"]) is not None and mutator["asked"]:
        asked = plural(mutator["asked"], "question")
        facts.append(f"{asked} to the mutator, {mutator['refused']} of its answers refused")
    facts.append(f"seed {search['seed']}")
    if stopped := search["stopped"]:
        facts.append(f"ended: {_STOPPED.get(stopped, stopped)}")
    return facts


def _confirmation(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """{verdict, baseline, winner, difference, p, note}, as texts."""
    if found is None:
        return None
    difference, verdict = found["difference"], found["verdict"]
    texts = {"difference": "–", "p": ""}
    if difference is not None:
        texts["difference"] = with_interval(difference["fitness"], difference["low"], difference["high"])
        texts["p"] = f"p {p_value(difference['p'])}"
    words = {"better": "better than the manifest", "worse": "worse than the manifest"}
    return {
        **texts,
        "verdict": words.get(verdict or "", verdict or "no verdict"),
        "state": verdict if verdict in words else "",
        "baseline": score(found["baseline"]),
        "winner": score(found["winner"]),
        "note": found["note"] or "",
    }


def _chart(found: Evolution) -> dict[str, Any] | None:
    """Return the chart of fitness by generation: lines for best, mean and worst."""
    generations = found.search["generations"]
    series = {name: [(each["number"], each["fitness"][name]) for each in generations] for name in _SERIES}
    values = [value for points in series.values() for _, value in points]
    if len(generations) < 2:
        return None
    across = Scale.of([each["number"] for each in generations], _EDGE, _WIDTH - 60)
    up = Scale.of(values, _HEIGHT - 30, 14)
    every = max(1, len(generations) // 10)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _EDGE,
        "bottom": _HEIGHT - 24,
        "lines": [
            {"name": name, "points": [(across(at), up(value), at, score(value)) for at, value in points]}
            for name, points in series.items()
        ],
        "said": "; ".join(
            f"{name} {score(points[0][1])} at first, {score(points[-1][1])} at last"
            for name, points in series.items()
        ),
        "ticks_up": [(up(value), score(value)) for value in up.ends],
        "ticks_across": [(across(each["number"]), str(each["number"] + 1)) for each in generations[::every]],
    }


def _prompts(found: Evolution) -> list[dict[str, Any]]:
    """Return the winner's prompts that differ from the manifest: {id, text, parts: [(before, after)]}.

    `parts` is None if the text in the manifest is unknown.
    """
    known = _manifest_values(found, "prompts")
    return [
        {"id": id_, "text": text, "parts": word_changes(known[id_], text) if id_ in known else None}
        for id_, text in (found.winner or _NO_CHANGES)["prompts"].items()
        if known.get(id_) != text
    ]


def _settings(found: Evolution) -> list[tuple[str, str, str]]:
    """Return the winner's temperatures and tools: (place, value in the manifest, value of the winner)."""
    rows = []
    for key in ("temperatures", "tools"):
        known = _manifest_values(found, key)
        for place, value in (found.winner or _NO_CHANGES)[key].items():
            before = _format_value(known[place]) if place in known else "as in the manifest"
            rows.append(
                (f"{key[:-1] if key == 'temperatures' else key} of {place}", before, _format_value(value))
            )
    return rows


def _manifest_values(found: Evolution, key: str) -> Mapping[str, Any]:
    """Return values of the manifest, from the search or else from the baseline genome."""
    said: Mapping[str, Any] = found.search[key] or found.baseline.get(key, {})
    return said


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else str(value)


def _scenarios(baseline: Genome, winner: Genome) -> list[tuple[str, float, float]]:
    """Return the training scenarios with a changed score: (name, before, after), the worst first."""
    before, after = baseline.get("scores", {}), winner.get("scores", {})
    found = [(name, before[name], now) for name, now in after.items() if before.get(name, now) != now]
    return sorted(found, key=lambda each: (each[2] - each[1], each[0]))


def _bounded(genomes: Sequence[Genome], ancestry: set[str]) -> list[Genome]:
    """Return the genomes in order; if there are too many, only the winner's ancestors and the fittest."""
    if len(genomes) <= MAX_GENOMES:
        return [*genomes]
    order = sorted(
        range(len(genomes)),
        key=lambda at: (genomes[at]["id"] not in ancestry, -genomes[at]["fitness"], at),
    )
    return [genomes[at] for at in sorted(order[:MAX_GENOMES])]
