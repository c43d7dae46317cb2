"""Calls that do more than compute a value: random numbers, printing, assertions. They keep the program's order."""

from __future__ import annotations

import operator
from typing import cast

import torch
import torch.fx
from torch._higher_order_ops.effects import with_effects

aten = torch.ops.aten

# torch.fx counts the assertion with a message as an effect, but not this one, and drops it as dead code.
torch.fx.node.has_side_effect(aten._assert_async.default)


def is_ordered(node: torch.fx.Node) -> bool:
    """Whether a call draws random numbers or has a side effect, and so must not move past others that do."""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        if torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable:
            return True
        return not target._schema.returns
    return isinstance(target, torch._ops.HigherOrderOperator) or node.is_impure()


def erase_tokens(graph_module: torch.fx.GraphModule) -> None:
    """Makes plain calls of a graph's calls with effects.

    A call with effects takes and gives a token, by which AOTAutograd and torch.export keep the order of such calls. The
    order of the graph does the same, and the tokens of a real call are None.
    """
    graph = graph_module.graph
    calls = [node for node in graph.nodes if node.op == "call_function" and node.target is with_effects]
    tokens: dict[torch.fx.Node, None] = {}
    for call in calls:
        token, op, *args = call.args
        if isinstance(token, torch.fx.Node):
            tokens[token] = None
        with graph.inserting_before(call):
            plain = graph.call_function(op, tuple(args), dict(call.kwargs))  # type: ignore[arg-type]
        _, *values = call.meta["val"]
        several = isinstance(op, torch._ops.OpOverload) and len(op._schema.returns) > 1
        plain.meta = {**call.meta, "val": tuple(values) if several or len(values) != 1 else values[0]}
        for user in list(call.users):
            number = cast(int, user.args[1])
            if number == 0:
                tokens[user] = None
            elif isinstance(plain.meta["val"], tuple):
                user.args = (plain, number - 1)
            else:
                user.replace_all_uses_with(plain)
                graph.erase_node(user)
    gone = set(tokens)
    for token in tokens:
        for user in list(token.users):
            user.args = torch.fx.node.map_arg(user.args, lambda node: None if node in gone else node)
    for token in tokens:
        if token.op == "placeholder":
            token.meta = {**token.meta, "val": None}
        else:
            graph.erase_node(token)
    for call in calls:
        graph.erase_node(call)
    graph_module.recompile()
