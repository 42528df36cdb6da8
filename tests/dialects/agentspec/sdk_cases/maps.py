"""MapNodes, with reducers and without."""

from __future__ import annotations

from pyagentspec.flows.flow import Flow
from pyagentspec.flows.nodes import (
    EndNode,
    MapNode,
    StartNode,
    ToolNode,
)
from pyagentspec.flows.nodes.mapnode import ReductionMethod
from pyagentspec.property import (
    ListProperty,
    NumberProperty,
    Property,
)
from pyagentspec.tools import ServerTool

from tests.dialects.agentspec.sdk_cases.case import (
    Case,
    case,
    in_a_row,
    number,
    text,
    texts,
)


def pricing() -> Flow:
    """A flow with a tool, whose values flow by name."""
    look = ServerTool(name="price_of", inputs=[text("bread"), text("market")], outputs=[number("price")])
    nodes = [
        StartNode(name="start", inputs=[text("bread"), text("market")]),
        ToolNode(name="look", tool=look),
        EndNode(name="end", outputs=[number("price"), text("bread")]),
    ]
    return in_a_row("pricing", nodes)


@case
def a_map_without_reducers_appends() -> Case:
    prices = ListProperty(title="prices", item_type=NumberProperty())
    nodes = [
        StartNode(name="start", inputs=[texts("breads"), text("market")]),
        MapNode(name="each", subflow=pricing()),
        EndNode(name="end", outputs=[prices, texts("names")]),
    ]
    bakery = in_a_row(
        "bakery",
        nodes,
        """
        start.breads -> each.iterated_bread
        start.market -> each.iterated_market
        each.collected_price -> end.prices
        each.collected_bread -> end.names
        """,
    )
    return Case(
        bakery,
        """
        - name: a list is iterated, a text is repeated
          input: {breads: [rye, oat], market: quay}
          tools:
            price_of:
              - {args: {bread: rye, market: quay}, return: 3.5}
              - {args: {bread: oat, market: quay}, return: 2}
          expect:
            path: [start, each, end]
            output: {$exact: {prices: [3.5, 2.0], names: [rye, oat]}}
        """,
    )


@case
def a_map_with_reducers_exposes_what_they_name() -> Case:
    levels: list[Property] = [
        number(title) for title in ("total", "mean", "highest", "lowest", "levels", "unused")
    ]
    read = ServerTool(name="read_gauge", inputs=[text("gauge")], outputs=levels)
    inner = [
        StartNode(name="start", inputs=[text("gauge")]),
        ToolNode(name="read", tool=read),
        EndNode(name="end", outputs=levels),
    ]
    each = MapNode(
        name="each",
        subflow=in_a_row("reading", inner),
        reducers={
            "total": ReductionMethod.SUM,
            "mean": ReductionMethod.AVERAGE,
            "highest": ReductionMethod.MAX,
            "lowest": ReductionMethod.MIN,
            "levels": ReductionMethod.APPEND,
        },
    )
    nodes = [
        StartNode(name="start", inputs=[texts("iterated_gauge")]),
        each,
        EndNode(name="end", outputs=each.outputs),
    ]
    return Case(
        in_a_row("river", nodes),
        """
        - name: three gauges
          input: {iterated_gauge: [upper, weir, mouth]}
          tools:
            read_gauge:
              - args: {gauge: upper}
                return: {total: 2, mean: 2, highest: 2, lowest: 2, levels: 2, unused: 2}
              - args: {gauge: weir}
                return: {total: 3.5, mean: 3.5, highest: 3.5, lowest: 3.5, levels: 3.5, unused: 3.5}
              - args: {gauge: mouth}
                return: {total: 0.5, mean: 0.5, highest: 0.5, lowest: 0.5, levels: 0.5, unused: 0.5}
          expect:
            output:
              $exact:
                collected_total: 6.0
                collected_mean: 2.0
                collected_highest: 3.5
                collected_lowest: 0.5
                collected_levels: [2.0, 3.5, 0.5]
        """,
    )
