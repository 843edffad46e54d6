#!/usr/bin/env python3
"""Golden cases of the command line.

tests/bad/NAME.yaml   with NAME.err:  `assay check NAME.yaml` must exit 2 and print exactly that on stderr
tests/good/NAME.yaml  with NAME.json: `assay check --json NAME.yaml` must exit 0 and print exactly that
tests/cli/NAME/cmd    a shell script, run in a fresh copy of its folder with assay on PATH; `out`, `err` and `exit` beside it are what
                      it must print and return (a missing file means: empty, 0)

usage: golden.py ASSAY [--update] [NAME...]     --update rewrites the expectations: read the diff before you commit it
"""
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def run(argv, cwd, env, stdin=subprocess.DEVNULL):
    p = subprocess.run(argv, cwd=cwd, env=env, stdin=stdin, capture_output=True, timeout=300)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def read(path):
    return path.read_bytes().decode("utf-8") if path.exists() else ""


class Golden:
    def __init__(self, assay, update, names):
        self.assay, self.update, self.names = assay, update, names
        self.passed = self.failed = 0
        self.lock_dir = tempfile.TemporaryDirectory()  # a run of somebody else's is not waited for
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "SLURM_", "OMP_", "CUDA_VISIBLE"))}
        self.env.update(NO_COLOR="1", LC_ALL="C.UTF-8", TZ="UTC", PATH=f"{Path(assay).parent}:{os.environ['PATH']}",
                        ASSAY_ROOT=str(ROOT), ASSAY_LOCK_DIR=self.lock_dir.name, ASAN_OPTIONS="detect_leaks=1", UBSAN_OPTIONS="print_stacktrace=1")

    def wanted(self, name):
        return not self.names or any(n in name for n in self.names)

    def verdict(self, name, pairs):
        """pairs: (what, file or None, expected, got)"""
        bad = [(w, f, e, g) for w, f, e, g in pairs if e != g]
        if bad and self.update and all(f is not None for _, f, _, _ in bad):
            for _, f, _, g in bad:
                if g or f.exists():
                    f.write_bytes(g.encode())
            print(f"updated {name}")
            bad = []
        if not bad:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED {name}")
        for what, _, expected, got in bad:
            diff = difflib.unified_diff(expected.splitlines(), got.splitlines(), f"{what} expected", f"{what} got", lineterm="")
            print("\n".join("    " + line for line in list(diff)[:60]))

    def bad(self, path):
        name = f"bad/{path.stem}"
        if not self.wanted(name):
            return
        code, out, err = run([self.assay, "check", path.name], path.parent, self.env)
        self.verdict(name, [("exit", None, "2", str(code)), ("stdout", None, "", out),
                            ("stderr", path.with_suffix(".err"), read(path.with_suffix(".err")), err)])

    def good(self, path):
        name = f"good/{path.stem}"
        if not self.wanted(name):
            return
        code, out, err = run([self.assay, "check", "--json", path.name], path.parent, self.env)
        try:
            json.loads(out)
        except ValueError as e:
            err += f"\nnot JSON: {e}"
        self.verdict(name, [("exit", None, "0", str(code)), ("stderr", None, "", err),
                            ("json", path.with_suffix(".json"), read(path.with_suffix(".json")), out)])

    def cli(self, folder):
        name = f"cli/{folder.name}"
        if not self.wanted(name):
            return
        with tempfile.TemporaryDirectory() as tmp:
            work = Path(tmp) / "case"
            shutil.copytree(folder, work)
            code, out, err = run(["bash", "-u", "./cmd"], work, self.env)
        out, err = out.replace(str(ROOT), "$ROOT"), err.replace(str(ROOT), "$ROOT")
        want = read(folder / "exit").strip() or "0"
        self.verdict(name, [("exit", folder / "exit" if want == "0" or (folder / "exit").exists() else None, want + "\n", f"{code}\n"),
                            ("stdout", folder / "out", read(folder / "out"), out),
                            ("stderr", folder / "err", read(folder / "err"), err)])

    def all(self):
        for path in sorted((HERE / "bad").glob("*.yaml")):
            if path.with_suffix(".err").exists() or self.update:
                self.bad(path)
        for path in sorted((HERE / "good").glob("*.yaml")):
            if path.with_suffix(".json").exists() or self.update:
                self.good(path)
        for cmd in sorted((HERE / "cli").glob("*/cmd")):
            self.cli(cmd.parent)
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def main(argv):
    args = [a for a in argv if a != "--update"]
    if not args:
        print(__doc__, file=sys.stderr)
        return 2
    return Golden(str(Path(args[0]).resolve()), "--update" in argv, args[1:]).all()


sys.exit(main(sys.argv[1:]))
