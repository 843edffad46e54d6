#!/usr/bin/env python3
"""Writes tests/data/judge-more.json: expected values for stats and judge, by plain counting in rationals and sorted lists.

Shares no code and no method with runner/: Walsh averages are listed and sorted, tails are sums of exact fractions, signed-rank laws
are counted in whole numbers, Holm is adjusted p-values. Standard library only.

    python3 tests/gen_judge_more.py > tests/data/judge-more.json
    python3 tests/gen_judge_more.py --check tests/data/judge-more.json    exit status 1 where the file is not what comes out
"""
import functools
import itertools
import json
import math
import random
import statistics as st
import sys
from fractions import Fraction
from math import comb

rnd = random.Random(20261130)
LOOKS = {8: 0, 10: 2, 12: 6, 16: 20, 20: 37, 24: 61, 32: 131, 40: 223, 48: 340, 64: 668}


def r6(x):
    return round(x, 6)


def mad(x):
    m = st.median(x)
    return st.median([abs(v - m) for v in x])


def quartile(x, q):
    s = sorted(x)
    at = (len(s) - 1) * q
    i = math.floor(at)
    return s[i] if i + 1 >= len(s) else s[i] + (s[i + 1] - s[i]) * (at - i)


def lag1(d):
    m, s = st.median(d), mad(d)
    if s == 0 or len(d) < 2:
        return 0.0
    w = [min(max(v, m - 3 * 1.4826 * s), m + 3 * 1.4826 * s) for v in d]
    mu = st.fmean(w)
    return sum((a - mu) * (b - mu) for a, b in zip(w, w[1:])) / sum((a - mu) ** 2 for a in w)


def walsh(d, cut):
    w = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(d, 2))
    e, r = st.median(w), lag1(d)
    g = math.sqrt((1 + min(r, 0.9)) / (1 - min(r, 0.9))) if r > 0 else 1.0
    if cut < 0:
        return {"estimate": e, "lo": None, "hi": None, "r1": r, "g": g}
    return {"estimate": e, "lo": e - (e - w[cut]) * g, "hi": e + (w[-1 - cut] - e) * g, "r1": r, "g": g}


@functools.lru_cache(None)
def counts(n):
    """How many subsets of 1..n have each sum, in whole numbers."""
    c = [1]
    for k in range(1, n + 1):
        c = [(c[s] if s < len(c) else 0) + (c[s - k] if 0 <= s - k < len(c) else 0) for s in range(len(c) + k)]
    return c


def fixed_cut(n, alpha):
    total, c, left = 0, -1, Fraction(alpha) * 2 ** n
    for s, k in enumerate(counts(n)):
        total += k
        if total > left:
            break
        c = s
    return c


def signed_p(d, mu):
    # The number of Walsh averages above mu is the statistic, ties and zeros counted against it. Differences are of small dyadic
    # numbers, so this is exact.
    x = [v - mu for v in d]
    w = sum(1 for i in range(len(x)) for j in range(i + 1) if x[i] + x[j] > 0)
    c = counts(len(x))
    return float(Fraction(sum(c[w:]), 2 ** len(x)))


def tail(n, k, p):
    p = Fraction(str(p)) if isinstance(p, float) else Fraction(p)  # 0.012 is 3/250: small denominators are quick
    return sum(comb(n, i) * p ** i * (1 - p) ** (n - i) for i in range(max(k, 0), n + 1))


def solve(n, k, level):
    lo, hi = Fraction(0), Fraction(1)
    for _ in range(54):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if tail(n, k, mid) < Fraction(level) else (lo, mid)
    return float(lo)


def holm(p, alpha):
    # By adjusted p-values, not by stepping down.
    order = sorted(range(len(p)), key=lambda i: p[i])
    worst, out = 0.0, [False] * len(p)
    for rank, i in enumerate(order):
        worst = max(worst, p[i] * (len(p) - rank))
        out[i] = worst <= alpha
    return out


def series(n, sd, mean=0.0):
    return [r6(mean + rnd.gauss(0, sd)) for _ in range(n)]


def main():
    out = {}
    out["summary"] = []
    for n in (1, 2, 3, 4, 5, 9, 64, 1500):
        x = [round(rnd.lognormvariate(3, 1), 3) for _ in range(n)]
        out["summary"].append({"x": x, "median": st.median(x), "mean": st.fmean(x), "min": min(x), "max": max(x),
                               "q1": quartile(x, 0.25), "q3": quartile(x, 0.75), "mad": mad(x)})
    out["walsh"] = []
    for n, cut, tied in ((1, 0, 0), (2, -1, 0), (3, 1, 0), (8, 3, 0), (9, 2, 1), (20, 37, 0), (31, 90, 1), (64, 668, 0),
                         (65, 500, 1), (150, 3000, 0), (257, 9000, 0), (8, 3, 2)):
        d = [0.25] * n if tied == 2 else [round(rnd.gauss(0, 1), 1) if tied else rnd.gauss(0.01, 0.02) for _ in range(n)]
        if n == 64:  # something to widen for
            for i in range(1, n):
                d[i] += 0.7 * d[i - 1]
        out["walsh"].append({"d": d, "cut": cut, **walsh(d, cut)})
    out["fixed_cut"] = [{"n": n, "alpha": float(a), "cut": fixed_cut(n, a)}
                        for n in list(range(0, 41)) + [48, 57, 64, 100, 129]
                        for a in ("0.05", "0.025", "0.01", "0.005", "0.001")]
    out["signed_p"] = []
    for n in (1, 2, 5, 7, 8, 12, 33, 64, 90):
        for tied in (False, True):
            d = [rnd.randrange(-8, 12) / 4 if tied else rnd.randrange(-2 ** 20, 3 * 2 ** 19) / 2 ** 20 for _ in range(n)]
            for mu in (0.0, 0.25, -0.5):
                out["signed_p"].append({"d": d, "mu": mu, "p": signed_p(d, mu)})
    out["binomial"] = [{"n": n, "k": k, "p": p, "tail": float(tail(n, k, p))}
                       for n, k, p in ((7, 7, 0.5), (10, 9, 0.5), (48, 3, 0.012), (48, 4, 0.012), (300, 0, 0.1), (300, 55, 0.1),
                                       (300, 301, 0.1), (1000, 540, 0.5), (20, 20, 0.99), (500, 5, 0.001))]
    out["point"] = []
    for n, p, a in ((48, 0.012, 0.01), (48, 0.012, 0.05), (1, 0.012, 0.01), (1000, 0.012, 0.01), (140, 0.012, 0.01), (10, 0.5, 1e-9)):
        k = 0
        while tail(n, k, p) > Fraction(str(a)):
            k += 1
        out["point"].append({"n": n, "p": p, "alpha": a, "k": k})
    out["clopper"] = [{"n": n, "k": k, "upper": solve(n, k + 1, "0.95") if k < n else 1.0,
                       "lower": solve(n, k, "0.05") if k else 0.0}
                      for n, k in ((100, 0), (100, 3), (2, 0), (2, 2), (40, 40), (33, 20))]
    out["holm"] = []
    for n in (1, 2, 3, 5, 12):
        for _ in range(4):
            p = [r6(10 ** rnd.uniform(-4, -0.5)) for _ in range(n)]
            out["holm"].append({"p": p, "alpha": 0.05, "reject": holm(p, 0.05)})
    out["tau"] = []
    for n, spread in ((1, 0.01), (48, 0.004), (48, 0.0005), (7, 0.02)):
        delta, se = series(n, spread), [r6(abs(rnd.gauss(0.0025, 0.0003))) for _ in range(n)]
        t2 = max(0.0, st.median([x * x for x in delta]) / 0.4549 - 2 * st.median([s * s for s in se])) / 2
        out["tau"].append({"delta": delta, "se": se, "tau": math.sqrt(t2)})

    out["null"] = []
    for n, sd, mean, m, tau in ((16, 0.01, 0.0, 1.05, 0.0025), (64, 0.01, 0.02, 1.05, 0.0025), (64, 0.01, 0.02, 1.05, 0.01),
                                (64, 0.01, 0.006, 1.05, 0.0), (24, 0.004, -0.01, 1.02, 0.001), (24, 0.001, 0.0014, 1.0, 0.0),
                                (24, 0.0005, 0.0011, 1.0, 0.0), (9, 0.01, 0.03, 1.05, 0.0), (5, 0.001, 0.05, 1.05, 0.0)):
        ship = [round(rnd.uniform(90, 110), 3) for _ in range(n)]
        null = [round(s * math.exp(rnd.gauss(mean, sd)), 3) for s in ship]
        z = [math.log(a / b) for a, b in zip(null, ship)]
        w = walsh(z, LOOKS.get(n, fixed_cut(n, "0.025")))
        far = abs(w["estimate"]) >= max(0.25 * max(math.log(m), 0.005), 2 * math.sqrt(2) * tau)
        biased = w["lo"] is not None and (w["lo"] > 0 or w["hi"] < 0) and far
        out["null"].append({"null": null, "shipped": ship, "ln_margin": math.log(m), "tau": tau, "biased": biased,
                            "noise": 1.4826 * mad(z) / math.sqrt(2), **w})
    out["tail"] = []
    for n, slow_arm, slow_ship in ((40, 8, 0), (40, 7, 0), (40, 6, 0), (40, 9, 1), (40, 9, 3), (40, 0, 9), (16, 0, 0), (64, 13, 3)):
        arm = [round(100 + rnd.uniform(-2, 2), 3) for _ in range(n)]
        ship = [round(100 + rnd.uniform(-2, 2), 3) for _ in range(n)]
        at = rnd.sample(range(n), slow_arm + slow_ship)
        for i in at[:slow_arm]:
            arm[i] = round(arm[i] * 1.4, 3)
        for i in at[slow_arm:]:
            ship[i] = round(ship[i] * 1.3, 3)
        a, s = st.median(arm), st.median(ship)
        only = sum(x > 1.05 * a and not y > 1.05 * s for x, y in zip(arm, ship))
        other = sum(y > 1.05 * s and not x > 1.05 * a for x, y in zip(arm, ship))
        p = float(tail(only + other, only, "1/2"))
        out["tail"].append({"arm": arm, "shipped": ship, "arm_only": only, "shipped_only": other, "p": p,
                            "flagged": only + other >= 7 and p < 0.01})
    out["batch"] = []
    for q, t, m in ((32, 13200, 1.05), (1000, 13200, 1.02), (32, 500, 1.02), (1, 1e6, 1.05), (1000, 1000, 1.0), (0, 100, 1.05), (500, 7800, 1.03)):
        out["batch"].append({"tick": q, "t": t, "ln_margin": math.log(m),
                             "batch": max(1, math.ceil(4 * q / (t * max(math.log(m), 0.005))))})

    out["confirm"] = []
    for tau in (0.0, 0.0025, 0.02):
        suspects, p = [], []
        for mean in (0.049, 0.055, 0.06, 0.09, 0.0525):
            d = series(32, 0.012, mean)
            suspects.append({"d": d, "ln_margin": math.log(1.05)})
            x = [v - math.log(1.05) for v in d]
            order = sorted(range(32), key=lambda i: abs(x[i]))
            w = sum(r + 1 for r, i in enumerate(order) if x[i] > 0)
            p.append(float(Fraction(sum(counts(32)[w:]), 2 ** 32)))
        reject = holm(p, 0.05)
        for s, pv, rej in zip(suspects, p, reject):
            e = walsh(s["d"], -1)["estimate"]
            s.update(p=pv, estimate=e, confirmed=rej and e > s["ln_margin"] + 1.645 * math.sqrt(2) * tau)
        out["confirm"].append({"tau": tau, "suspects": suspects})

    out["ratio"] = []
    for n in (1, 5, 6):
        cells = []
        for i in range(n):
            over = round(rnd.uniform(100, 9000), 1)
            e = r6(rnd.gauss(0.17, 0.03))
            cells.append({"estimate": e, "se": r6(abs(rnd.gauss(0.003, 0.001))), "of_ns": round(over * math.exp(e), 1),
                          "over_ns": over, "weight": None if i == 5 else rnd.choice([1, 2])})
        mean, se = st.fmean(c["estimate"] for c in cells), math.sqrt(sum(c["se"] ** 2 for c in cells)) / n
        wc = [c for c in cells if c["weight"]]
        of, over = (sum(c["weight"] * c[k] for c in wc) for k in ("of_ns", "over_ns"))
        wse = math.sqrt(sum((c["weight"] * c["of_ns"] / of * c["se"]) ** 2 for c in wc))
        out["ratio"].append({"cells": cells,
                             "geomean": [math.exp(mean), math.exp(mean - 1.96 * se), math.exp(mean + 1.96 * se), n],
                             "weighted": [of / over, of / over * math.exp(-1.96 * wse), of / over * math.exp(1.96 * wse), len(wc)]})
    return out


def same(a, b):
    """Equal but for the last digits of a number, which are the C library's."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-12 * max(1.0, abs(a))
    return type(a) is type(b) and a == b


if sys.argv[1:2] == ['--check']:
    with open(sys.argv[2], encoding='utf-8') as f:
        sys.exit(0 if same(main(), json.load(f)) else '%s is not what %s writes' % (sys.argv[2], sys.argv[0]))
print(json.dumps(main()))
