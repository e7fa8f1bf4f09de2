"""What hostile code tries, and what must come of it: a list, and one harness that runs it.

``exhaustion``, ``outliving``, ``reaching``, ``kernel`` and ``forging`` hold the list, each attack
once; ``ground`` is the worker that is attacked, with a victim that lives through all of it;
``table`` writes the list into ``docs/isolation.md``.
"""
