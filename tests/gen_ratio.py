#!/usr/bin/env python3
"""Writes tests/data/ratio.json: cells of a ratio check with their samples, and what the ratio must come out as by each estimator, computed
here from the definitions and with nothing of assay: means and medians by `statistics`, the Hodges-Lehmann median over all Walsh
averages, the geomean as an exponential of a mean of logarithms, the weighted mean as total over total.

usage: gen_ratio.py > data/ratio.json
"""
import json
import math
import random
import statistics as st

SHAPES = [("q_proj", 1, 400e3), ("kv_proj", 2, 60e3), ("o_proj", 1, 210e3), ("gate_up", 2, 700e3), ("down", 1, 690e3), ("square", None, 180e3)]
ROUNDS = 24


def cell(rnd, index, shape, data, ratio, spread):
    name, weight, over = shape
    samples = {"s32": [], "f32": []}
    for _ in range(ROUNDS):
        drift = math.exp(rnd.gauss(0, 0.01))  # common to both arms of a round
        samples["s32"].append(round(over * drift * math.exp(rnd.gauss(0, spread))))
        samples["f32"].append(round(over * ratio * drift * math.exp(rnd.gauss(0, spread))))
    return {
        "kind": "cell", "id": f"accprobe/accumulator/mmq.q8_0/{name}/{data}/m=512", "plan_index": index, "status": "pass", "reason": None,
        "suite": "accprobe", "case": "accumulator", "kernel": "mmq.q8_0", "geometry": name, "data": data, "point": {"m": 512},
        "weight": weight, "selection": "none", "selected": None, "margin": 1.05, "margin_warn": None, "margin_floor_ns": 0, "gating": True,
        "waiver": None,
        "judge": {"estimator": "paired", "alpha": 0.025, "rounds": ROUNDS, "min_rounds": 8, "max_rounds": 64, "confirm": "none", "tau": 0},
        "ratio_check": {"of": "f32", "over": "s32", "geomean": True, "weighted": True, "agree_tolerance": 0.02,
                        "may_differ": ["matrix_instruction"], "equal_issue_interval": 0.05, "bar_at_least": 1.1},
        "checks": [{"check": "reference", "arm": "f32", "status": "pass", "text": None}], "work": None, "timing": None, "notes": [],
        "arms": [{"name": n, "role": "shipped" if n == "s32" else "candidate", "unsupported": None, "out_sha256": None, "form": None,
                  "artifact": None, "summary": None, "samples_ns": samples[n]} for n in ("s32", "f32")],
        "measure": {"clock": "device", "batch": 1, "rounds": ROUNDS, "scrub_bytes": 0, "tick_ns": 1, "floor_ns": 100, "cut": None},
        "device_state": None, "confirm": None, "repeats": None,
    }


def hodges_lehmann(d):
    return st.median((d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i + 1))


def ratios(cells, estimator):
    out = []
    for c in cells:
        over, of = c["arms"][0]["samples_ns"], c["arms"][1]["samples_ns"]
        if estimator == "mean":
            out.append(st.fmean(of) / st.fmean(over))
        elif estimator == "median":
            out.append(st.median(of) / st.median(over))
        else:
            out.append(math.exp(hodges_lehmann([math.log(a / b) for a, b in zip(of, over)])))
    return out


def expect(cells, estimator):
    r = ratios(cells, estimator)
    weighted = [c for c in cells if c["weight"]]
    total = [sum(c["weight"] * st.median(c["arms"][k]["samples_ns"]) for c in weighted) for k in (1, 0)]
    return {"ratio": r, "geomean": math.exp(st.fmean(map(math.log, r))), "weighted": total[0] / total[1], "n": len(cells), "of_weighted": len(weighted)}


def main():
    rnd = random.Random(20261130)
    runs = []
    # (name, ratio of wide, ratio of mid, spread of a sample, what comes of it)
    for name, wide, mid, spread, verdict in (("agree", 1.19, 1.193, 0.002, "met"), ("disagree", 1.19, 1.30, 0.002, "invalid"),
                                             ("missed", 1.06, 1.061, 0.002, "missed")):
        cells = {d: [cell(rnd, 6 * k + i, s, d, r * math.exp(rnd.gauss(0, 0.004)), spread) for i, s in enumerate(SHAPES)]
                 for k, (d, r) in enumerate((("wide", wide), ("mid", mid)))}
        want = {e: {d: expect(cells[d], e) for d in cells} for e in ("mean", "median", "paired")}
        for e in want:
            want[e]["difference"] = abs(want[e]["wide"]["geomean"] - want[e]["mid"]["geomean"])
        runs.append({"name": name, "verdict": verdict, "cells": cells["wide"] + cells["mid"], "want": want})
    print(json.dumps(runs, separators=(",", ":")))


main()
