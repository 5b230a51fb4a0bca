"""Functions of this program as tools: their schemas, and how they are run.

::

    def f(a: int) ──► signature ──► schema, for the model
                          │
    tool_invoke ──► runner ──► arguments as their types ──► a thread, or the event loop ──► tool_result, tool_failed
"""
