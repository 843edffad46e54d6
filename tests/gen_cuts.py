#!/usr/bin/env python3
"""Writes runner/stats_cuts.c: the fixed-n cuts of the signed-rank interval, for n up to 1024.

cut(n) is the largest c with P(T <= c) <= alpha, T the signed-rank statistic of n rounds under a symmetric law; -1 where none
is. The law of T is the subset-sum recursion over 1..n, here in double precision; the script fails where a tail comes so near to
alpha (1e-12) that rounding could move a cut. Needs numpy.

    python3 tests/gen_cuts.py > runner/stats_cuts.c
"""
import sys

import numpy as np

ALPHAS = [0.05, 0.025, 0.01, 0.005, 0.001]
N = 1024


def main():
    size = N * (N + 1) // 4 + 2
    f = np.zeros(size)
    f[0] = 1.0
    cuts = {a: [-1] for a in ALPHAS}
    for n in range(1, N + 1):
        g = f.copy()
        if n < size:
            g[n:] += f[:-n]
        f = g / 2
        top = n * (n + 1) // 4 + 1
        tail = np.cumsum(f[:top])
        for a in ALPHAS:
            c = int(np.searchsorted(tail, a, side="right")) - 1
            near = min(abs(tail[k] - a) for k in (max(c, 0), min(c + 1, top - 1)))
            # Small n give tails that are whole multiples of 2^-n and cannot equal these alphas.
            if near < 1e-12:
                sys.exit(f"n={n} alpha={a}: tail within {near} of alpha")
            cuts[a].append(c)
    print("/* Fixed-n cuts of the signed-rank interval, one look, for n = 0..1024; written by tests/gen_cuts.py. */")
    print('#include "stats.h"\n')
    print('#include "stats_cuts.h"\n')
    print("/* clang-format off */")
    print("const int32_t stats_cuts[STATS_N_ALPHAS][STATS_MAX_ROUNDS + 1] = {")
    for a in ALPHAS:
        print(f"\t{{ /* one-sided {a} */")
        row = cuts[a]
        for i in range(0, len(row), 16):
            print("\t\t" + " ".join(f"{c}," for c in row[i:i + 16]))
        print("\t},")
    print("};\n/* clang-format on */")


main()
