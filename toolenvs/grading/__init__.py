"""Answer equivalence: mathematics, text, SQL results. Pure; what must be killable is in a worker.

``boxed`` takes an answer out of a message, ``math`` says whether it equals the gold answer.
"""
