"""Small verdict files for tests of diff, merge and baseline: made by rule, the same bytes each time, valid under the schema.

    f = File("base.jsonl"); f.cell("mla.absorb_q", "kv=2048,t_q=4").slower("split=4", 1.2); f.write()
"""
import hashlib
import json
import math


class Noise:
    """A small generator, so that no version of Python's own changes a file."""

    def __init__(self, seed):
        self.x = seed * 2654435761 % 2**64 | 1

    def next(self):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.x >> 33) / 2**31

    def normal(self):
        return math.sqrt(-2 * math.log(1 - self.next())) * math.cos(2 * math.pi * self.next())


def sha(*parts):
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


class Cell:
    def __init__(self, owner, index, kernel, geometry, data, point, arms):
        self.owner, self.point = owner, point
        self.kernel, self.factor, self.levels, self.out, self.code, self.bare = kernel, {}, {}, {}, {}, set()
        us = 10 + 7 * (index % 5)
        for k, arm in enumerate(arms):
            self.levels[arm] = us * 1000 * (1 - 0.03 * k)
            self.out[arm] = sha("out", kernel, geometry, data, point)
            self.code[arm] = {"hash": sha("code", kernel, arm), "registers": 96, "spills_bytes": 0}
        name = ",".join(f"{k}={v}" for k, v in point.items())
        self.r = {
            "kind": "cell", "id": f"{owner.suite}/c/{kernel}/{geometry}/{data}/{name}", "plan_index": index, "status": "pass",
            "reason": None, "suite": owner.suite, "case": "c", "kernel": kernel, "geometry": geometry, "data": data, "point": point,
            "params": {"n": 64, **point}, "seed": 7, "weight": None, "selection": "arm", "selected": arms[-1],
            "selected_row": "s.yaml:9", "margin": 1.05, "margin_warn": None, "margin_floor_ns": 0, "rule": "s.yaml:20",
            "gating": True, "rig": "s.yaml:30", "waiver": None,
            "judge": {"estimator": "paired", "alpha": 0.025, "rounds": 0, "min_rounds": 8, "max_rounds": 64, "confirm": "fresh", "tau": None},
            "ratio_check": None, "attempt": 1, "rerun": "assay run s.yaml", "checks": [],
            "data_audit": {"x": {"digest": sha("data", kernel)[:16], "readings": [
                {"as": "f32", "n": 64, "nan": 0, "inf": 0, "denormal": 0, "zero": 0, "negative": 30, "positive": 34, "min": -1.0, "max": 1.0}],
                "distinct": None}},
            "work": {"bytes": 1024.0, "least_bytes": 1024.0, "flop": 64.0}, "timing": None, "notes": [], "arms": [],
            "measure": {"clock": "device", "scrub_bytes": 536870912, "batch": 1, "order": "random", "order_seed": 5, "rounds": 16,
                        "dropped": 0, "cut": None, "floor_ns": 2700, "tick_ns": 32.0, "wall_ns": 1000, "threads": 0},
            "device_state": {"before": None, "after": None, "retries": 0}, "cost": None, "confirm": None, "repeats": None}

    def slower(self, arm, factor):
        """arm None: every arm."""
        for a in self.levels if arm is None else [arm]:
            self.factor[a] = self.factor.get(a, 1) * factor
        return self

    def fail(self, status, arm=None, text=None, check=None, **more):
        self.r["status"] = status
        self.r["reason"] = text
        if check:
            self.r["checks"].append({"check": check, "arm": arm, "status": status, "text": text, **more})
        return self

    def bits(self, *arms):
        for a in arms or list(self.out):
            self.out[a] = sha("other", self.out[a], a if arms else "")
        return self

    def untimed(self):
        self.bare = set(self.levels)
        self.r["measure"] = None
        return self

    def samples(self, noise, process):
        rounds, series = self.owner.rounds, {}
        common = [0.004 * noise.normal() for _ in range(rounds)]
        shift = self.owner.drift * (1 + process)
        for arm in [*self.levels, "null"]:
            level = self.levels["shipped" if arm == "null" else arm] * self.factor.get("shipped" if arm == "null" else arm, 1)
            series[arm] = [round(level * math.exp(shift + common[r] + self.owner.sigma * noise.normal())) for r in range(rounds)]
        return series

    def record(self):
        noise = Noise(self.owner.noise * 1000 + self.r["plan_index"])
        r = dict(self.r)
        series = self.samples(noise, 0)
        r["arms"] = [{"name": a, "role": "shipped" if a == "shipped" else "null" if a == "null" else "candidate", "unsupported": None,
                      "out_sha256": self.out.get(a), "form": None, "artifact": self.code.get(a), "summary": None,
                      "samples_ns": None if a in self.bare or self.bare and a == "null" else series[a]} for a in series]
        if self.owner.processes > 1 and not self.bare:
            r["repeats"] = [{"process": 100 + p, "arms": [{"name": a, "samples_ns": s} for a, s in self.samples(noise, 0).items()]}
                            for p in range(1, self.owner.processes)]
        return r


class File:
    def __init__(self, path, noise=1, suite="mla", kernels=("mla.absorb_q", "mla.attn_gathered"), arms=("shipped", "split=4"), kv=(2048, 32768),
                 t_q=(1, 4, 8), commit="4f2c9e1", drift=0.0, sigma=0.003, processes=3, rounds=16, tau=0.001, data=("unit",)):
        self.path, self.noise, self.suite, self.drift, self.sigma = path, noise, suite, drift, sigma
        self.processes, self.rounds = processes, rounds
        self.cells = []
        for k in kernels:
            for d in data:
                for v in kv:
                    for t in t_q:
                        self.cells.append(Cell(self, len(self.cells), k, "glm", d, {"kv": v, "t_q": t}, arms))
        self.header = {
            "kind": "header", "format": 1, "tool_version": "0.1.0", "tool_commit": "abc", "binary_sha256": sha("binary"), "suite": suite,
            "suite_path": "s.yaml", "suite_sha256": sha("suite"), "plan_hash": sha("plan", *[c.r["id"] for c in self.cells]),
            "cells": len(self.cells), "cases": [], "serving": [], "rigs": [], "settings": {}, "backend": "cuda",
            "device": {"name": "NVIDIA H200", "uuid": "GPU-5f3e01c2-0000", "cc": 90, "threads": 0, "driver": "580.95", "runtime": "13.0",
                       "memory_bytes": 1, "llc_bytes": 1, "more": {"mig": False, "ecc": True, "power_limit_w": 700}},
            "host": "node1", "git": {"commit": commit + "0" * 33, "dirty": False}, "shard": None, "processes": processes,
            "command": "assay run s.yaml", "process": 99, "started": "2026-11-29T01:02:03Z",
            "calibration": {"sentinels": {"copy": [round(50000 * math.exp(drift))] * 5, "latency": [round(90000 * math.exp(drift))] * 5}},
            "lock": None, "tau": tau if tau else 0.0025, "tau_source": "store tau.json" if tau else "built-in", "tau_n": 64 if tau else 0}
        self.footer = True
        self.noisy = False

    def cell(self, kernel, point):
        for c in self.cells:
            if c.kernel == kernel and c.r["id"].endswith("/" + point):
                return c
        raise KeyError((kernel, point))

    def drop(self, kernel, point):
        self.cells.remove(self.cell(kernel, point))
        return self

    def lines(self):
        out = [self.header] + [c.record() for c in self.cells]
        if self.footer:
            counts = dict.fromkeys(("error", "timeout", "invalid", "wrong", "mismatch", "regression", "inconclusive", "pass", "skip", "xfail",
                                    "xpass"), 0)
            for c in self.cells:
                counts[c.r["status"]] += 1
            bad = sum(counts[s] for s in ("mismatch", "wrong", "regression", "xpass"))
            out.append({"kind": "footer", "counts": counts, "gated": len(self.cells), "gated_undecided": counts["inconclusive"], "warned": 0,
                        "biased": 0, "noisy": self.noisy, "not_run": 0, "waivers": [], "wall_ns": 10**9,
                        "exit": 1 if bad else 3 if counts["error"] else 0, "finished": "2026-11-29T01:03:03Z"})
        return [json.dumps(x, separators=(",", ":")) for x in out]

    def write(self):
        with open(self.path, "w") as f:
            f.write("\n".join(self.lines()) + "\n")
        return self
