"""Layered layout of a graph, from top to bottom.

The method is that of Sugiyama, Tagawa and Toda (1981). `harness.draw.sketch` has assigned the nodes to layers. Here,

1. every edge gets a bend in each layer it crosses (at least one, which has room for its label);
2. `_order_layers` sorts each layer by the barycentre of its members' neighbours, to reduce crossings;
3. `_assign_x` moves the members as close to their neighbours as their widths permit (least squares).

A data edge between two nodes of the same layer is an arch above them, with its top in the layer above.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import copysign, inf

from harness.draw.sketch import Sketch
from harness.graph.model import START

Point = tuple[float, float]
Waypoint = tuple[float, float, float]
_Ports = dict[tuple[int, int], int]

_SWEEPS, _SETTLING_TURNS, _LAST_TURNS = 12, 30, 10
_LARGE = 3000  # boxes; larger graphs get a quarter of the iterations
_LAYER_GAP = 18.0
_PORT_GAP = 16.0
_BEND_ROOM = 18.0
_LOW = 20.0  # height of a one-line label; edges cross higher layers almost vertically
_STEEPEST = 0.25  # largest dx/dy of an edge between two nodes of a layer
_DATA_WEIGHT, _DISCONNECTED_WEIGHT, _DISCONNECTED_PULL = 0.1, 1e-4, 0.8
_STRAIGHTNESS = 4  # weight of a bend's neighbour that is a bend of the same edge; 1 for a node


@dataclass(eq=False)
class Box:
    """A node, an edge label, or a bend of an edge, with its centre `x`, `y`.

    room          width reserved for it
    headroom      height reserved for it, where that is more than `height`
    weight        its resistance to being moved; of two neighbours the lighter gives way, and data edges are light
    upright       for a bend: the edge passes between nodes or tall labels, so it is drawn almost vertically
    disconnected  no path connects it with the start: it gives way to everything else and stays near the middle
    """

    width: float
    height: float
    room: float
    x: float = 0.0
    y: float = 0.0
    headroom: float = 0.0
    weight: float = 1.0
    upright: bool = False
    disconnected: bool = False
    above: list[Box] = field(default_factory=list)
    below: list[Box] = field(default_factory=list)


@dataclass(frozen=True)
class Layout:
    """The paths of the edges by position (self-loops have none), and the size of the drawing, in pixels.

    A path is a list of points (x, y, dx/dy) from the border of the source to the border of the target.
    At the top of an arch dx/dy is infinite, with the sign of dx.
    """

    paths: Mapping[int, Sequence[Waypoint]]
    width: float
    height: float


def arrange(graph: Sketch, nodes: Mapping[str, Box], labels: Mapping[int, Box]) -> Layout:
    """Set `x` and `y` of all nodes and labels, and return the paths. The top left corner is (0, 0).

    Args:
        graph: the prepared graph.
        nodes: the box of each node, by name.
        labels: the box of each label, by its position in `graph.arrows`.
    """
    layers: list[list[Box]] = [[] for _ in range(2 * max(graph.layer.values()) + 1)]
    for name, box in nodes.items():
        layers[2 * graph.layer[name]].append(box)
    chains: dict[int, list[Box]] = {}
    for position, (source, target) in enumerate(graph.arrows):
        if source != target:
            ends, label = (nodes[source], nodes[target]), labels.get(position)
            begin, end = 2 * graph.layer[source], 2 * graph.layer[target]
            level = begin == end
            chain = (
                _arch(layers[begin - 1], ends, label) if level else _chain(layers, ends, (begin, end), label)
            )
            for bend in chain[1:-1]:
                bend.weight = 1.0 if position < len(graph.edges) else _DATA_WEIGHT
            chains[position] = chain
    _mark_disconnected(nodes[START], layers)
    _order_layers(layers)
    _assign_x(nodes[START], layers)
    height = _assign_y(layers)
    everything = [box for layer in layers for box in layer]
    left = min(box.x - box.room / 2 for box in everything)
    for box in everything:
        box.x -= left
    width = max(box.x + box.room / 2 for box in everything)
    ports = _ports(everything)
    return Layout({position: _path(chain, ports) for position, chain in chains.items()}, width, height)


def _chain(
    layers: Sequence[list[Box]], ends: tuple[Box, Box], depths: tuple[int, int], label: Box | None
) -> list[Box]:
    """Connect source and target by a box in every layer between theirs; the label is the middle one."""
    between = range(min(depths) + 1, max(depths))
    bends = [Box(0, 0, room=_BEND_ROOM, upright=depth % 2 == 0) for depth in between]
    if label:
        bends[len(bends) // 2 // 2 * 2] = label  # bends with an even index are between two layers of nodes
    for depth, bend in zip(between, bends, strict=True):
        layers[depth].append(bend)
    upper, lower = ends if depths[0] < depths[1] else ends[::-1]
    chain = [upper, *bends, lower]
    for above, below in pairwise(chain):
        above.below.append(below)
        below.above.append(above)
    return chain if upper is ends[0] else chain[::-1]


def _arch(above: list[Box], ends: tuple[Box, Box], label: Box | None) -> list[Box]:
    """Connect source and target by a box in the layer above theirs. The first layer needs none: it has one node."""
    top = label or Box(0, 0, room=_BEND_ROOM)
    above.append(top)
    for node in ends:
        top.below.append(node)
        node.above.append(top)
    return [ends[0], top, ends[1]]


def _mark_disconnected(start: Box, layers: Sequence[Sequence[Box]]) -> None:
    connected = {id(start)}
    following = [start]
    for box in following:
        new = [near for near in box.above + box.below if id(near) not in connected]
        connected.update(map(id, new))
        following += new
    for box in (box for layer in layers for box in layer):
        box.disconnected = id(box) not in connected


def _iterations(layers: Sequence[Sequence[Box]], turns: int) -> int:
    return turns // 4 if sum(map(len, layers)) > _LARGE else turns


def _order_layers(layers: list[list[Box]]) -> None:
    """Sweep down and up, sorting each layer by barycentre, and keep the order with the fewest crossings."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_iterations(layers, _SWEEPS)):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        for fixed, layer in pairwise(layers if downwards else layers[::-1]):
            _sort_by_barycentre(layer, fixed, downwards)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _sort_by_barycentre(layer: list[Box], fixed: Sequence[Box], downwards: bool) -> None:
    """Sort a layer by the mean rank of each member's neighbours. Members without neighbours keep their rank."""
    rank = {id(box): i for i, box in enumerate(fixed)}
    own = {id(box): i for i, box in enumerate(layer)}

    def barycentre(box: Box) -> float:
        near = box.above if downwards else box.below
        return sum(rank[id(other)] for other in near) / len(near) if near else own[id(box)]

    layer.sort(key=barycentre)


def _crossings(layers: Sequence[Sequence[Box]]) -> int:
    """Count the pairs of edge segments that cross: inversions between adjacent layers."""
    count = 0
    for upper, lower in pairwise(layers):
        rank = {id(box): i for i, box in enumerate(lower)}
        passed: list[int] = []
        for box in upper:
            targets = [rank[id(other)] for other in box.below]
            count += sum(len(passed) - bisect_right(passed, target) for target in targets)
            for target in targets:
                insort(passed, target)
    return count


def _assign_x(start: Box, layers: Sequence[Sequence[Box]]) -> None:
    """Move each layer towards the means of its neighbours: of the layer above and below in turn, then of both.

    Nothing fixes the absolute position, so after each turn everything is shifted to put the start at 0.
    """
    for layer in layers:
        _place_layer(layer, [0.0] * len(layer))
    turns = _iterations(layers, _SETTLING_TURNS)
    for turn in range(turns):
        downwards, both = turn % 2 == 0, turn >= turns - _iterations(layers, _LAST_TURNS)
        for layer in layers if downwards else layers[::-1]:
            _place_layer(layer, [_mean_of_neighbours(box, downwards, both) for box in layer])
        middle = start.x
        for box in (box for layer in layers for box in layer):
            box.x -= middle


def _mean_of_neighbours(box: Box, downwards: bool, both: bool) -> float:
    """Return the position that a box is drawn to. Neighbours with no other edge are ignored: they follow."""
    near = box.above if downwards else box.below
    if both or not near:
        near = box.above + box.below
    near = [other for other in near if len(other.above) + len(other.below) > 1] or near
    if not near:
        return 0.0
    weights = [other.weight * (1 if box.width or other.width else _STRAIGHTNESS) for other in near]
    mean = sum(w * other.x for w, other in zip(weights, near, strict=True)) / sum(weights)
    return mean * _DISCONNECTED_PULL if box.disconnected else mean


def _place_layer(layer: Sequence[Box], wanted: Sequence[float]) -> None:
    """Place boxes near the wanted positions: least squares with minimum distances.

    The algorithm is pool adjacent violators, on positions with the minimum distances subtracted.
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (left.room + right.room) / 2)
    blocks: list[tuple[float, float, int]] = []
    for box, want, offset in zip(layer, wanted, offsets, strict=False):
        weight, size = _DISCONNECTED_WEIGHT if box.disconnected else box.weight, 1
        total = weight * (want - offset)
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / weight:
            more, heavier, count = blocks.pop()
            total, weight, size = total + more, weight + heavier, size + count
        blocks.append((total, weight, size))
    flat = [total / weight for total, weight, size in blocks for _ in range(size)]
    for box, x, offset in zip(layer, flat, offsets, strict=False):
        box.x = x + offset


def _assign_y(layers: Sequence[Sequence[Box]]) -> float:
    """Set the y of each layer, from top to bottom, and return the total height."""
    y = -_LAYER_GAP
    for layer in layers:
        height = max((max(box.height, box.headroom) for box in layer), default=0.0)
        y += _LAYER_GAP
        for box in layer:
            box.y = y + height / 2
            box.upright |= height > _LOW
            if not box.width:
                box.height = height
        y += height
    return y


def _path(chain: Sequence[Box], ports: _Ports) -> list[Waypoint]:
    """Return the path of an edge: vertical at both ends, almost vertical at upright bends, smooth elsewhere."""
    first, *bends, last = chain
    ends = [_port(first, bends[0], ports), _port(last, bends[-1], ports)]
    centres = [ends[0], *((bend.x, bend.y) for bend in bends), ends[1]]
    path = [(*ends[0], 0.0)]
    for i, bend in enumerate(bends):
        if first.y == last.y:
            path.append((bend.x, bend.y + bend.height / 2 + 2, copysign(inf, ends[1][0] - ends[0][0])))
            continue
        slope = _slope(centres[i], centres[i + 1], centres[i + 2])
        if bend.upright:
            slope = max(-_STEEPEST, min(_STEEPEST, slope))
            half = bend.height / 2 if ends[1][1] > ends[0][1] else -bend.height / 2
            path += [(bend.x + step * slope, bend.y + step, slope) for step in (-half, half)]
        else:
            path.append((bend.x, bend.y, slope))
    return [*path, (*ends[1], 0.0)]


def _slope(before: Point, at: Point, after: Point) -> float:
    """Return dx/dy such that the curve never overshoots the point (Fritsch and Carlson 1980)."""
    one, two = (at[0] - before[0]) / (at[1] - before[1]), (after[0] - at[0]) / (after[1] - at[1])
    return 2 * one * two / (one + two) if one * two > 0 else 0.0


def _ports(boxes: Sequence[Box]) -> _Ports:
    """Return the rank of each neighbour, from left to right, among those on the same side of a box."""
    ranks: _Ports = {}
    for box in boxes:
        for side in (box.above, box.below):
            for rank, neighbour in enumerate(sorted(side, key=lambda near: near.x)):
                ranks.setdefault((id(box), id(neighbour)), rank)
    return ranks


def _port(node: Box, neighbour: Box, ports: _Ports) -> Point:
    """Return the end point of an edge on its node: spread along the lower or upper border by neighbour."""
    below = neighbour.y > node.y
    side = node.below if below else node.above
    gap = min(_PORT_GAP, node.width * 0.6 / max(len(side) - 1, 1))
    x = node.x + (ports[id(node), id(neighbour)] - (len(side) - 1) / 2) * gap
    return x, node.y + (node.height / 2 if below else -node.height / 2)
