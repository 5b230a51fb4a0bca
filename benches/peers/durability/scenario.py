"""Makes the scenario: one session, 50 batches of 10 tool calls, as JSON. The same seed gives the same bytes.

    python3 scenario.py --seed 1 > scenario.json
"""

import argparse
import json
import random
import sys

SEED = 1
BATCHES = 50
CALLS_PER_BATCH = 10
# A batch is not required to have this mix; the session has it exactly.
MIX = {"read": 0.6, "write": 0.3, "keyed": 0.1}


def scenario(seed=SEED, batches=BATCHES, size=CALLS_PER_BATCH):
    rng = random.Random(seed)
    total = batches * size
    kinds = [kind for kind, share in MIX.items() for _ in range(round(total * share))]
    rng.shuffle(kinds)
    calls = [one(n, kind, rng) for n, kind in enumerate(kinds)]
    return {
        "version": 1,
        "seed": seed,
        "batches": [calls[at : at + size] for at in range(0, total, size)],
    }


def one(n, kind, rng):
    """`before_ms` passes before the effect of a call (or in the middle of a read), `after_ms` behind it."""
    call = {
        "id": f"call_{n:04}",
        "kind": kind,
        "before_ms": rng.randint(1, 4),
        "after_ms": rng.randint(1, 4),
        "output": f"{rng.getrandbits(64):016x}",
    }
    return call


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=SEED)
    json.dump(scenario(options.parse_args().seed), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
