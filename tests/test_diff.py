#!/usr/bin/env python3
"""Properties of `assay diff`, and `assay ab` with planted faults.

usage: test_diff.py ASSAY BUILD/tests ROOT

- a file against itself has nothing but `~` and exits 0, whatever is in it
- diff(a, b) and diff(b, a) mirror: every row has its opposite, ratios are reciprocal
- the tool's own numbers agree with the same computed here from the samples
- every file that ab and merge write is valid under the schema
- ab of a build against itself finds nothing wrong; against a faulty one it names both faults and nothing else
"""
import json
import math
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ASSAY, PLUGINS, ROOT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve() / "plugin", Path(sys.argv[3]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
from maker import File  # noqa: E402

MIRROR = {"slower": "faster", "faster": "slower", "missing": "added", "added": "missing", "fails": "fixed", "fixed": "fails"}
failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print("FAILED", what)


def diff(a, b, *more):
    p = subprocess.run([ASSAY, "diff", a, b, "--all", "--format", "json", *more], capture_output=True, text=True)
    try:
        return p.returncode, json.loads(p.stdout)
    except ValueError:
        check(False, f"no JSON of diff {a} {b}: {p.stdout[:200]} {p.stderr[:300]}")
        return p.returncode, {"rows": []}


def change(f, rng):
    """Random changes of every kind that a mirror has; `regression` here stands for any failure."""
    for c in list(f.cells):
        match rng.randrange(9):
            case 0:
                c.slower(rng.choice(["shipped", "split=4"]), rng.choice([0.8, 0.9, 0.99, 1.01, 1.02, 1.1, 1.3]))
            case 1:
                c.bits(*rng.choice([(), ("split=4",)]))
            case 2:
                c.fail(rng.choice(["mismatch", "wrong"]), "split=4", "differs", "identity", differ=1, of=4)
            case 3:
                c.r[rng.choice(["seed"])] = 9
            case 4:
                c.r["measure"]["batch"] = 2
            case 5:
                f.cells.remove(c)
            case 6:
                c.untimed().r["status"] = "skip"
            case 7:
                c.slower(None, rng.choice([1, 1.4])).fail("invalid", None, "throttled")
    return f


def properties(folder):
    for seed in range(30):
        rng = random.Random(seed)
        kind = dict(sigma=rng.choice([0.001, 0.01, 0.05]), processes=rng.choice([1, 2, 3]), tau=rng.choice([None, 0.002]))
        a = change(File(folder / "a.jsonl", noise=2 * seed + 1, drift=0, **kind), rng).write()
        kind["processes"] = rng.choice([1, 3])
        b = change(File(folder / "b.jsonl", noise=2 * seed + 2, drift=rng.choice([0, 0.01, -0.03, 0.2]), **kind), rng).write()
        for f in (a, b):
            code, d = diff(f.path, f.path)
            check(code == 0 and {r["state"] for r in d["rows"]} == {"same"}, f"seed {seed}: {f.path.name} against itself")
        (_, there), (_, back) = diff(a.path, b.path), diff(b.path, a.path)
        key = lambda r: (r["id"], r["arm"] or "", r["state"])  # noqa: E731
        # A failure that changes its name is new both ways; which arm it names is of the failing side.
        both_fail = {r["id"] for r in there["rows"] if r["state"] == "fails" and "(was" in (r["why"] or "")}
        # A failure that comes after a skip is new; one that ends in a skip is not fixed.
        skipped = [{r["id"] for r in d["rows"] if (r["why"] or "").startswith("skipped in")} for d in (there, back)]
        fails = [{r["id"] for r in d["rows"] if r["state"] == "fails"} for d in (there, back)]
        both_fail |= skipped[0] & fails[1] | skipped[1] & fails[0]
        one_sided = ("fails", "fixed")
        want = sorted((r["id"], "" if r["state"] in one_sided else r["arm"] or "", MIRROR.get(r["state"], r["state"]))
                      for r in there["rows"] if r["id"] not in both_fail)
        # A new failure that is only in head is `!` there and `<` on the way back.
        only = {r["id"] for d in (there, back) for r in d["rows"] if "(only in head)" in (r["why"] or "")}
        got = sorted((r["id"], "" if r["state"] in one_sided else r["arm"] or "", r["state"]) for r in back["rows"] if r["id"] not in both_fail)
        check([w for w in want if w[0] not in only] == [g for g in got if g[0] not in only], f"seed {seed}: mirror of states: "
              f"{[w for w in want if w not in got and w[0] not in only]} / {[g for g in got if g not in want and g[0] not in only]}")
        ratios = {key(r)[:2]: r["ratio"] for r in back["rows"] if r["ratio"] and r["state"] != "bits"}
        for r in there["rows"]:
            if r["ratio"] and r["state"] != "bits" and key(r)[:2] in ratios:
                check(abs(math.log(r["ratio"] * ratios[key(r)[:2]])) < 1e-5, f"seed {seed}: reciprocal ratio of {key(r)}")
        check(abs((there["drift"] or 0) + (back["drift"] or 0)) < 1e-6, f"seed {seed}: drift changes its sign")
        for d in (there, back):
            tells = {s: {r["id"] for r in d["rows"] if r["state"] == s} for s in ("missing", "added", "incomparable")}
            check(d["times_compared"] <= d["timed"] <= d["compared"] <= d["all_cells"] - d["skipped"], f"seed {seed}: counts of cells")
            check((d["exit"] == 3) == (d["nothing_compared"] is not None and not any(r["state"] in ("fails", "slower") for r in d["rows"])),
                  f"seed {seed}: exit 3 is of nothing compared")
            one_side = {r["id"] for r in d["rows"] if r["state"] == "fails" and "(only in head)" in (r["why"] or "")}
            check(d["compared"] + len((tells["missing"] | tells["added"]) - {r["id"] for r in d["rows"] if r["arm"]} | one_side) <= d["all_cells"],
                  f"seed {seed}: what is on one side only is not compared")
        k = rng.choice([1, 2, 3])
        code, d = diff(a.path, b.path, "--processes", str(k))
        fewer = min(a.processes, b.processes) < k
        times = [r for r in d["rows"] if r["ratio"]]
        check(not (fewer and times), f"seed {seed}: --processes {k} of {a.processes} and {b.processes}")
        check(fewer or a.processes != k or b.processes != k or d["rows"] == there["rows"], f"seed {seed}: as many as there are changes nothing")


def median(x):
    x = sorted(x)
    return (x[len(x) // 2] + x[(len(x) - 1) // 2]) / 2


def location(samples):
    d = [math.log(x) for x in samples]
    return median([(d[i] + d[k]) / 2 for i in range(len(d)) for k in range(i + 1)])


def lag1(d):
    middle = median(d)
    reach = 3 * 1.4826 * median([abs(x - middle) for x in d])
    c = [min(max(x, middle - reach), middle + reach) for x in d]
    mean = sum(c) / len(c)
    return sum((x - mean) * (y - mean) for x, y in zip(c, c[1:])) / sum((x - mean) ** 2 for x in c)


def error(samples):
    """Standard error of the location of 16 samples: half of [w[29], w[M-1-29]], the one-look interval at 2.5 %, widened for rounds that follow
    each other, over 1.96."""
    d = [math.log(x) for x in samples]
    w = sorted((d[i] + d[k]) / 2 for i in range(len(d)) for k in range(i + 1))
    r = min(lag1(d), 0.9)
    return (w[len(w) - 1 - 29] - w[29]) / 2 / 1.96 * (math.sqrt((1 + r) / (1 - r)) if r > 0 else 1)


def holm(p, alpha=0.05):
    """Indices that are rejected."""
    out = set()
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[i] > alpha / (len(p) - rank):
            break
        out.add(i)
    return out


def numbers(folder):
    tau = 0.004
    a = File(folder / "a.jsonl", noise=11, processes=2, t_q=(1, 4), sigma=0.01, tau=tau).write()
    f = File(folder / "b.jsonl", noise=12, processes=3, t_q=(1, 4), sigma=0.01, tau=tau, drift=0.02)
    for i, c in enumerate(f.cells):
        c.slower("split=4", (1.07, 1.03, 1.018, 0.985, 1.012, 0.96, 1, 1)[i])
    f.write()
    _, d = diff(a.path, f.path)
    y, v = [{}, {}], [{}, {}]
    for side, name in enumerate(("a.jsonl", "b.jsonl")):
        for line in open(folder / name):
            r = json.loads(line)
            if r["kind"] != "cell":
                continue
            for arm in ("shipped", "split=4"):
                runs = [r["arms"]] + [p["arms"] for p in r["repeats"]]
                series = [x["samples_ns"] for run in runs for x in run if x["name"] == arm]
                y[side][r["id"], arm] = sum(map(location, series)) / len(runs)
                v[side][r["id"], arm] = (sum(error(x) ** 2 for x in series) / len(runs) + tau**2) / len(runs)
    shipped = [y[1][k] - y[0][k] for k in y[0] if k[1] == "shipped"]
    sentinel = [math.log(round(t * math.exp(0.02)) / t) for t in (50000, 90000)]
    drift = median(shipped + sentinel)
    check(abs(d["drift"] - drift) < 1e-5, f"drift {d['drift']} is {drift}")
    controls = shipped + sentinel
    spread = 1.4826 * median([abs(c - drift) for c in controls])
    var_drift = (1.2533 * spread) ** 2 / len(controls)
    check(abs(d["tau"] - tau) < 1e-9, f"tau {d['tau']}: the controls of this file scatter by less than it explains")
    rows = [r for r in d["rows"] if r["ratio"]]
    p, change = [], []
    for r in rows:
        k = (r["id"], r["arm"])
        delta, se = y[1][k] - y[0][k] - drift, math.sqrt(v[0][k] + v[1][k] + var_drift)
        check(abs(math.log(r["ratio"]) - delta) < 1e-5, f"ratio of {k}")
        for end, sign in (("lo", -1), ("hi", 1)):
            check(abs(math.log(r[end]) - (delta + sign * 1.959964 * se)) < 1e-5, f"{end} of {k}")
        p.append(math.erfc(abs(delta / se) / math.sqrt(2)))
        change.append(delta)
    check(len(rows) == len(y[0]) and d["comparisons"] == len(rows), "every arm of every cell is compared")
    rejected, least = holm(p), math.log(1.01)
    for i, r in enumerate(rows):
        want = "same" if abs(change[i]) <= least else "undecided" if i not in rejected else "slower" if change[i] > 0 else "faster"
        check(r["state"] == want, f"{r['id']} {r['arm']}: {r['state']}, not {want} ({change[i]:.4f}, p {p[i]:.2g})")
    check({"same", "undecided", "slower", "faster"} == {r["state"] for r in rows}, "every state of a time is among them")


def ab(folder):
    suite = ROOT / "tests/data/twice.yaml"

    def run(head, *more):
        out = folder / "ab.jsonl"
        p = subprocess.run([ASSAY, "ab", PLUGINS / "twice.so", PLUGINS / head, "--suite", suite, "-o", out, "--force", "--backend", "host", *more],
                           capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "ASSAY_LOCK_DIR": str(folder), "HOME": str(folder)})
        cells = [json.loads(x) for x in open(out)] if out.exists() else []
        return p, [c for c in cells if c["kind"] == "cell"]

    p, cells = run("twice.so", "--margin", "900%")
    check(p.returncode == 0 and len(cells) == 8 and all(c["status"] == "pass" for c in cells), f"a build against itself: {p.stdout}{p.stderr}")
    check(all(c["arms"][0]["out_sha256"] == c["arms"][1]["out_sha256"] for c in cells), "a build against itself has its own bits")
    p, cells = run("twice_faulty.so")
    wrong = {c["case"] for c in cells if c["status"] == "mismatch"}
    check(p.returncode == 1 and wrong == {"c.wide"}, f"the flipped bit and nothing else: {wrong} {p.stderr}")
    for c in cells:
        slow = c["timing"] and c["timing"]["ratio"] or 0
        if c["case"] == "c.trial":
            check(slow > 0, f"the slow arm was timed: {slow}")
        if c["case"] == "c.wide":
            check([f["ulp_max"] for f in c["checks"] if f["check"] == "identity"] == [1], "one bit is one ULP")
    words = p.stdout.replace("base/shipped", "").replace("head/shipped", "").replace("c.shipped", "")
    check(not any(w in words for w in ("served", "serving", "advice", "shipped")), f"two builds are base and head, nothing is served: {p.stdout}")
    check("not slower than base" in p.stdout and "head us" in p.stdout, f"and are called so: {p.stdout}")
    reasons = [c["reason"] for c in cells if c["case"] == "c.trial"]
    check(len(reasons) == 2 and all(r and "of base/trial" in r for r in reasons), f"the record names the yardstick: {reasons}")
    page = subprocess.run([ASSAY, "report", folder / "ab.jsonl", "-o", "-", "--format", "md"], capture_output=True, text=True)
    check("| base us | head |" in page.stdout, f"the report too: {page.stdout[:600]}")
    page = subprocess.run([ASSAY, "report", folder / "ab.jsonl", "-o", "-", "--format", "html"], capture_output=True, text=True).stdout
    words = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.S)
    words = re.sub(r'class="served"', "", words)
    check("head/trial" in words and "served" not in words, f"nor is anything served on the page: {re.findall('.{60}served.{60}', words)[:3]}")
    # A cell is run again by what its record says, pasted into a shell: the builds, the margin and the settings are in it.
    odd = folder / "it's one.so"
    shutil.copy(PLUGINS / "twice.so", odd)
    for head, more, status in ((odd, ["--margin", "900%", "--set", "timing.max_rounds=24"], 0),
                               ("twice_faulty.so", ["--bits-may-differ", "--margin", "900%"], 1), ("twice_faulty.so", ["--margin", "900%"], 1)):
        p, cells = run(head, *more)
        check(p.returncode == status, f"{head}: {p.stdout}{p.stderr}")
        cell = [c for c in cells if c["case"] == "c.wide"][0]
        words = shlex.split(cell["rerun"])
        check(words[:3] == ["assay", "ab", str(PLUGINS / "twice.so")] and words[3] == str(PLUGINS / head), f"the builds by their names: {words}")
        check(set(more) <= set(words), f"every option of the run: {words}")
        p = subprocess.run(["sh", "-c", f'"$0" {cell["rerun"][len("assay "):]} -o "$1"', ASSAY, folder / "again.jsonl"], capture_output=True, text=True,
                           env={"PATH": "/usr/bin:/bin", "ASSAY_LOCK_DIR": str(folder), "HOME": str(folder)})
        again = [json.loads(x) for x in open(folder / "again.jsonl")]
        check([c["id"] for c in again if c["kind"] == "cell"] == [cell["id"]], f"that cell and no other: {cell['rerun']}: {p.stderr}")
        check(p.returncode == status and [c["status"] for c in again if c["kind"] == "cell"] == [cell["status"]], f"with its verdict: {p.stdout}")
        (folder / "again.jsonl").unlink()
    for order, want in (("split=4,shipped", "random"), ("fixed", "fixed"), ("random", "random")):
        p, cells = run("twice.so", "--margin", "900%", "--set", f"timing.order={order}", "--filter", "case=c.wide,t=1")
        got = {c["measure"]["order"] for c in cells}
        check(got == {want}, f"order {order}: two builds have none of a list's names: {got} {p.stderr}")
    p, cells = run("twice_faulty.so", "--format", "md")
    check(p.stdout.startswith("**assay ab FAIL**") and "| mismatch | demo.twice" in p.stdout, f"markdown: {p.stdout[:300]}")
    line = p.stdout.split("\n")[0]
    for status in {c["status"] for c in cells}:
        n = sum(c["status"] == status for c in cells)
        check(f" {n} {status}" in line, f"{n} {status} are counted: {line}")
    p, cells = run("thrice.so", "--bits-may-differ", "--margin", "900%")
    check(cells and all(c["status"] == "wrong" for c in cells), "another factor is outside the tolerance of the base's reference")
    p, _ = run("pair.so")
    check(p.returncode == 2 and "no kernel in common" in p.stderr, f"nothing in common: {p.stderr}")
    valid = subprocess.run([sys.executable, ROOT / "tests/schema_check.py", "--schema", ROOT / "schemas/verdict.schema.json", folder / "ab.jsonl"],
                           capture_output=True, text=True)
    check(valid.returncode == 0, f"schema: {valid.stdout}{valid.stderr}")


def shards(folder):
    whole = File(folder / "whole.jsonl").write()
    for i in (1, 2):
        f = File(folder / f"s{i}.jsonl")
        f.cells = f.cells[i - 1::2]
        f.header["shard"], f.header["cells"] = {"i": i, "n": 2}, len(f.cells)
        f.write()
    p = subprocess.run([ASSAY, "merge", folder / "s2.jsonl", folder / "s1.jsonl", "-o", folder / "m.jsonl"], capture_output=True, text=True)
    check(p.returncode == 0, f"merge: {p.stderr}")
    ids = [[json.loads(x)["id"] for x in open(folder / n) if '"kind":"cell"' in x] for n in ("whole.jsonl", "m.jsonl")]
    check(ids[0] == ids[1], "merged cells stand in the order of the plan")
    valid = subprocess.run([sys.executable, ROOT / "tests/schema_check.py", "--schema", ROOT / "schemas/verdict.schema.json", folder / "whole.jsonl",
                            folder / "m.jsonl"], capture_output=True, text=True)
    check(valid.returncode == 0, f"schema: {valid.stdout[:600]}{valid.stderr[:600]}")
    check(whole is not None, "")


with tempfile.TemporaryDirectory() as tmp:
    for part in (properties, numbers, shards, ab):
        part(Path(tmp))
print("test_diff:", "ok" if not failures else f"{failures} failed")
sys.exit(failures > 0)
