"""Problems on structures: paths, grids, coins, words, queues, automata."""

from __future__ import annotations

import heapq

import numpy as np

from toolenvs.sources._problem import Problem, fill, several, whole


def grid_paths(rng: np.random.Generator) -> Problem:
    """The number of monotone lattice paths that avoid some points."""
    width, height = whole(rng, 8, 14), whole(rng, 8, 14)
    blocked = sorted({(whole(rng, 1, width - 1), whole(rng, 1, height - 1)) for _ in range(9)})
    ways = [[0] * (height + 1) for _ in range(width + 1)]
    for x in range(width + 1):
        for y in range(height + 1):
            if (x, y) not in blocked:
                before = (ways[x - 1][y] if x else 0) + (ways[x][y - 1] if y else 0)
                ways[x][y] = before if x or y else 1
    return Problem(
        f"A path goes from (0, 0) to ({width}, {height}) by steps (+1, 0) and (0, +1) and never "
        f"visits one of the points {', '.join(map(str, blocked))}. How many such paths are there?",
        str(ways[width][height]),
        fill(
            """
            from functools import cache

            blocked = set($blocked)

            @cache
            def paths(x, y):
                if x < 0 or y < 0 or (x, y) in blocked:
                    return 0
                return 1 if x == y == 0 else paths(x - 1, y) + paths(x, y - 1)

            print(paths($width, $height))
            """,
            blocked=blocked,
            width=width,
            height=height,
        ),
    )


def shortest_path(rng: np.random.Generator) -> Problem:
    """The cheapest way through a grid of costs: Dijkstra here, relaxation in the program."""
    size = whole(rng, 6, 9)
    grid = [several(rng, size, 1, 9) for _ in range(size)]
    goal, best = (size - 1, size - 1), {(0, 0): grid[0][0]}
    queue = [(grid[0][0], (0, 0))]
    while queue:
        cost, (r, c) = heapq.heappop(queue)
        if (r, c) == goal:
            break
        for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if 0 <= cell[0] < size and 0 <= cell[1] < size:
                through = cost + grid[cell[0]][cell[1]]
                if through < best.get(cell, through + 1):
                    best[cell] = through
                    heapq.heappush(queue, (through, cell))
    rows = "\n".join(" ".join(map(str, row)) for row in grid)
    return Problem(
        "Each cell of this grid has a cost:\n\n"
        f"{rows}\n\n"
        "A walk starts in the top left cell, ends in the bottom right cell and moves up, down, "
        "left or right. It pays the cost of every cell it visits, the first and the last "
        "included. What is the smallest total cost?",
        str(best[goal]),
        fill(
            """
            grid = $grid
            n = len(grid)
            cost = {(r, c): 10 ** 9 for r in range(n) for c in range(n)}
            cost[0, 0] = grid[0][0]
            for _ in range(n * n):
                for r, c in cost:
                    for near in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                        if near in cost:
                            cost[r, c] = min(cost[r, c], cost[near] + grid[r][c])
            print(cost[n - 1, n - 1])
            """,
            grid=grid,
        ),
    )


def coin_ways(rng: np.random.Generator) -> Problem:
    """The number of ways to pay an amount with given coins."""
    others = rng.choice(40, size=whole(rng, 3, 5), replace=False)
    coins = [1, *sorted(2 + int(coin) for coin in others)]
    amount = whole(rng, 120, 400)
    ways = [1] + [0] * amount
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return Problem(
        f"There are coins of {', '.join(map(str, coins[:-1]))} and {coins[-1]} cents, any number "
        f"of each. In how many ways can exactly {amount} cents be paid? The order of the coins "
        "does not matter.",
        str(ways[amount]),
        fill(
            """
            from functools import cache

            coins = $coins

            @cache
            def ways(total, kinds):
                if kinds == 0:
                    return int(total == 0)
                coin = coins[kinds - 1]
                return sum(ways(total - used, kinds - 1) for used in range(0, total + 1, coin))

            print(ways($amount, len(coins)))
            """,
            coins=coins,
            amount=amount,
        ),
    )


def words(rng: np.random.Generator) -> Problem:
    """The number of words without a given block, by the automaton of the block's prefixes."""
    letters = "abc"[: whole(rng, 2, 3)]
    block = "".join(letters[i] for i in several(rng, whole(rng, 3, 5), 0, len(letters) - 1))
    length = whole(rng, 12, 40)
    counts = [1] + [0] * (len(block) - 1)  # counts[k]: words that end with k letters of the block
    for _ in range(length):
        following = [0] * len(block)
        for matched, count in enumerate(counts):
            for letter in letters:
                if (state := _overlap(block[:matched] + letter, block)) < len(block):
                    following[state] += count
        counts = following
    return Problem(
        f"How many words of length {length} over the letters {', '.join(letters)} do not contain "
        f"'{block}' as a block of neighbouring letters?",
        str(sum(counts)),
        fill(
            """
            from collections import Counter

            block = $block
            ends = Counter({"": 1})
            for _ in range($length):
                longer = Counter()
                for end, count in ends.items():
                    for letter in $letters:
                        word = end + letter
                        if not word.endswith(block):
                            longer[word[-(len(block) - 1):]] += count
                ends = longer
            print(sum(ends.values()))
            """,
            block=block,
            length=length,
            letters=letters,
        ),
    )


def _overlap(text: str, block: str) -> int:
    """The length of the longest prefix of ``block`` that ``text`` ends with."""
    return next(n for n in range(len(block), -1, -1) if text.endswith(block[:n]))


def queue_wait(rng: np.random.Generator) -> Problem:
    """The total waiting time at one server: Lindley's recursion here, a clock in the program."""
    a, c, m, seed = whole(rng, 5, 60), whole(rng, 1, 100), whole(rng, 101, 997), whole(rng, 1, 100)
    customers, gap, service = whole(rng, 30, 120), whole(rng, 5, 12), whole(rng, 5, 12)
    x, wait, total, served = seed, 0, 0, 0
    for number in range(customers):
        x = (a * x + c) % m
        if number:
            wait = max(0, wait + served - (x % gap))
        x = (a * x + c) % m
        served = 1 + x % service
        total += wait
    return Problem(
        f"Numbers are drawn from the sequence x -> ({a} x + {c}) mod {m}, which starts at "
        f"x = {seed}; each draw replaces x and gives the new x. {customers} customers come to one "
        "server, who serves them in order without a break. For each customer in turn, one draw x "
        f"gives the minutes since the customer before came, x mod {gap} (the first comes at minute "
        f"0, but draws too), and a second draw x gives the minutes of service, 1 + (x mod "
        f"{service}). How many minutes do all customers together wait before their service starts?",
        str(total),
        fill(
            """
            def draws():
                x = $seed
                while True:
                    x = ($a * x + $c) % $m
                    yield x

            numbers = draws()
            clock = free = waited = 0
            for customer in range($customers):
                since = next(numbers) % $gap
                clock += since if customer else 0
                begin = max(clock, free)
                waited += begin - clock
                free = begin + 1 + next(numbers) % $service
            print(waited)
            """,
            seed=seed,
            a=a,
            c=c,
            m=m,
            customers=customers,
            gap=gap,
            service=service,
        ),
    )


_LIVELY_RULES = (22, 30, 45, 54, 73, 75, 86, 89, 101, 105, 106, 110, 122, 124, 135, 137, 150, 193)


def cell_automaton(rng: np.random.Generator) -> Problem:
    """The living cells of an elementary cellular automaton on a ring after some steps."""
    rule, size, steps = int(rng.choice(_LIVELY_RULES)), whole(rng, 21, 60), whole(rng, 15, 80)
    alive = sorted({whole(rng, 0, size - 1) for _ in range(6)})
    cells = np.zeros(size, dtype=np.int64)
    cells[alive] = 1
    table = np.array([rule >> k & 1 for k in range(8)])
    for _ in range(steps):
        cells = table[4 * np.roll(cells, 1) + 2 * cells + np.roll(cells, -1)]
    return Problem(
        f"{size} cells numbered from 0 stand in a ring. At first the cells "
        f"{', '.join(map(str, alive))} are alive. In each step all cells change at once by "
        f"Wolfram's rule {rule}: a cell is alive afterwards if bit 4l + 2c + r of {rule} is 1 (bit "
        "0 is the lowest), where l, c and r are 1 if the cell before it, itself and the cell after "
        f"it were alive and 0 if not. How many cells are alive after {steps} steps?",
        str(int(cells.sum())),
        fill(
            """
            n, alive = $size, set($alive)
            for _ in range($steps):
                alive = {i for i in range(n) if $rule >> (
                    4 * ((i - 1) % n in alive) + 2 * (i in alive) + ((i + 1) % n in alive)) & 1}
            print(len(alive))
            """,
            size=size,
            alive=alive,
            steps=steps,
            rule=rule,
        ),
    )
