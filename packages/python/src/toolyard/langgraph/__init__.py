"""LangGraph's ``ToolNode``, with the engine below it.

::

    from toolyard import Engine
    from toolyard.langgraph import ToolNode

    with Engine(approve=ask) as engine:
        graph.add_node("tools", ToolNode([search, send], engine=engine, options={"send": {"side_effects": "write"}}))

All calls of a message are one batch: those that read overlap, those that change something run one after another, each
with its timeout, its limits and its approval. Made for langgraph 1.2, whose own node it extends.
"""

try:
    import langgraph.prebuilt as _prebuilt
except ImportError as _reason:
    raise ImportError("toolyard.langgraph needs LangGraph: pip install 'toolyard[langgraph]'") from _reason

from .node import ToolNode

__all__ = ["ToolNode"]
del _prebuilt
