"""The line protocol of ``toolyard serve --stdio``.

::

    any thread ──► Link.request, Link.send ──► Outbox ──► its thread ──► standard input ──► toolyard
                                                                                               │
    futures, turns, functions, questions ◄── Link.receive ◄── its thread ◄── standard output ◄─┘

Whoever sends does not wait for an answer, and lines are read all the time by a thread that runs nobody else's code, so
neither side waits for the other.
"""
