#!/usr/bin/env python3
"""scripts/nightly, three nights: the first gives the baseline, the second is quiet, and in the third a slow arm and a flipped bit are planted: exit 1, and
these two are named and nothing else. And a night that was killed is taken up again. Speeds differ by a factor of three, so that no load of the
machine decides.

usage: test_nightly.py ASSAY ROOT [--timing]     --timing plants the slow arm too
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ASSAY, ROOT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TIMING = "--timing" in sys.argv

SUITE = """\
assay: 1
suite: night
about: A night on the probes

geometries:
  rows: {rows: 64, d: 96}

distributions:
  unit: {fill: uniform, range: [-1, 1]}

timing: {estimator: paired, max_rounds: 16, scrub: none, warmup: {launches: 1}}

cases:
  - id: speed
    kernels: [probe.work]
    arms: {arms: [{arm: %(speed)s, name: candidate}]}
    axes: {steps: [4000]}
    checks: {regression: {select: candidate, against: shipped}}
  - id: steady
    kernels: [probe.work]
    arms: {arms: [{arm: shipped, name: candidate}]}
    axes: {steps: [5000]}
    checks: {regression: {select: candidate, against: shipped}}
  - id: bits
    kernels: [probe.faults]
    geometry: rows
    arms: {arms: [{arm: %(bits)s, name: candidate}]}
    data: unit
    axes: {d: [96]}
    checks: {identity: {against: shipped}}
  - id: same
    kernels: [probe.faults]
    geometry: rows
    arms: {arms: [{arm: split=2, name: candidate}]}
    data: unit
    axes: {d: [64]}
    checks: {identity: {against: shipped}}

margins:
  - {match: {}, fail: 100%%}

rigs:
  - {match: {}, timing: gate}
"""

passed = failed = 0


def check(what, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what}\n{detail}")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        work = Path(tmp)
        # The scripts as they are, in a repository of their own: a baseline is of committed files.
        (work / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/nightly", work / "scripts")
        (work / "suites").mkdir()
        suite, listed = work / "suites/night.yaml", work / "suites/nightly.yaml"

        def night_of(item):
            listed.write_text(f"assay: 1\nsuite: nightly\nsuites:\n  - {item}\n")

        night_of("night.yaml")
        env = {**os.environ, "HOME": tmp, "XDG_CACHE_HOME": tmp + "/cache", "XDG_STATE_HOME": tmp + "/state", "ASSAY_LOCK_DIR": tmp, "GIT_CONFIG_GLOBAL": "/dev/null",
               "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}

        def git(*args):
            subprocess.run(["git", *args], cwd=work, env=env, check=True, capture_output=True)

        def write(speed="shipped", bits="split=2"):
            suite.write_text(SUITE % {"speed": speed, "bits": bits})
            git("add", "suites", "scripts")
            git("commit", "-qm", "suite", "--allow-empty")

        def night(*more):
            p = subprocess.run([sys.executable, "scripts/nightly", "--assay", ASSAY, "--least", "100%", *more], cwd=work, env=env,
                               capture_output=True, text=True, timeout=240)
            return p.returncode, p.stdout, p.stdout + p.stderr

        git("init", "-q")
        write()
        code, out, both = night()
        check("the first night passes", code == 0 and out.startswith("PASS"), both)
        check("and is the first baseline", "this run is the first one" in out and list((work / "results/baseline").glob("night.*.last.jsonl")), both)
        check("one paragraph", out.count("\n") == 1, out)

        code, out, both = night()
        check("the second night is quiet", code == 0 and "quiet, 4 of 4 cells compared" in out, both)

        # The slow arm only where a timing may be asserted: nothing that must pass on a busy machine depends on one.
        write(speed="more=2000" if TIMING else "shipped", bits="flip_bit")
        code, out, both = night()
        check("planted faults fail", code == 1 and out.startswith("FAIL"), both)
        against = out[out.find("against the last baseline"):]
        if TIMING:
            check("the slow arm is named", "speed/probe.work/default/default/steps=4000 candidate" in against, out)
        check("the flipped bit is named", "bits/probe.faults/rows/unit/d=96 candidate" in against, out)
        check("and nothing else", "steady/" not in out and "same/" not in out and against.count("candidate") == 1 + TIMING, out)

        device = next((work / "results/nightly").glob("*/2*"))
        for name in ("night.jsonl", "night.2.jsonl", "night.3.jsonl", "report.html", "report.md", "junit.xml", "night.3.last.md"):
            check(f"{name} is there", (device / name).exists(), str(list(device.iterdir())))
        junit = (device / "junit.xml").read_text() if (device / "junit.xml").exists() else ""
        check("JUnit has the failures", f'failures="{1 + TIMING}"' in junit, junit[:400])

        # A night that was killed: header and one cell are kept, the rest is done.
        write()
        run = (device / "night.jsonl").read_text().splitlines(True)
        running = work / "results/nightly/running"
        night("--", "--filter", "case=same|bits")  # gives a file of this very plan
        newest = max(device.glob("night*.jsonl"), key=lambda p: p.stat().st_mtime)
        lines = newest.read_text().splitlines(True)
        cut = [line for line in lines if json.loads(line)["kind"] in ("header", "cell")][:2]
        (running / "night.jsonl").write_text("".join(cut) + '{"kind": "cell", "id": "night/sa')
        code, out, both = night("--", "--filter", "case=same|bits")
        check("a killed night is taken up", "--resume" in both and code == 0, both)
        newest = max(device.glob("night*.jsonl"), key=lambda p: p.stat().st_mtime)
        kinds = [json.loads(line)["kind"] for line in newest.read_text().splitlines()]
        check("its file says so", "resume" in kinds and kinds.count("cell") == 2 and kinds[-1] == "footer", str(kinds))
        check("the first file is as it was", run == (device / "night.jsonl").read_text().splitlines(True))

        night_of("{suite: night.yaml, filter: case=same|bits, processes: 2}")
        code, out, both = night()
        newest = max(device.glob("night*.jsonl"), key=lambda p: p.stat().st_mtime)
        records = [json.loads(line) for line in newest.read_text().splitlines()]
        check("a part of a suite, in two processes", code == 0 and sum(r["kind"] == "cell" for r in records) == 2 and records[0]["processes"] == 2, both)
        (work / "suites/gpu.yaml").write_text(suite.read_text().replace("suite: night", "suite: gpu"))
        night_of("{suite: gpu.yaml, backend: cuda}")
        if subprocess.run([ASSAY, "list", "suites/gpu.yaml", "--count", "--backend", "cuda"], cwd=work, env=env, capture_output=True).returncode != 0:
            code, out, both = night()
            check("what is for another machine is said and no failure", code == 0 and "gpu is for cuda alone" in out, both)
        for item, what, says in (("none.yaml", "a suite that is not there", "none.yaml: error: No such file"),
                                 ("{suite: night.yaml, filtre: x}", "a wrong key", "unknown key 'filtre'"),
                                 ("{suite: night.yaml, backend: gpu}", "an unknown backend", "unknown value 'gpu'"),
                                 ("{suite: night.yaml, filter: 'kernel=('}", "a filter for no cell", "matches no cell"),
                                 ("nightly.yaml", "a file that names itself", "one suite is wanted here")):
            night_of(item)
            code, out, both = night()
            check(f"{what} is exit 2, and said", code == 2 and not out and says in both and "or a suite that it names is wrong" in both, both)
        listed.write_text(suite.read_text())
        code, out, both = night()
        check("a suite is no list of suites", code == 2 and not out and "is not a file that names suites" in both, both)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
