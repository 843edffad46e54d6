"""The verdict file that the tests of report and table read: every kind of status, made by rule and judged by `assay rejudge`."""
import json
import os
import subprocess

from maker import File

Q, G = "mla.absorb_q", "mla.attn_gathered"


def judge(path, *more):
    """Verdicts as the judge gives them for these samples, without a second process."""
    subprocess.run(["assay", "rejudge", path, "--set", "confirm=none", *more, "-o", path + ".judged"], stdout=subprocess.DEVNULL)
    os.replace(path + ".judged", path)


def everything(path="run.jsonl", **more):
    f = File(path, arms=("shipped", "split=2", "split=4"), kv=(2048, 32768, 131072), t_q=(1, 2, 4, 8), processes=1, tau=0.001, **more)
    f.header["suite_path"] = "suites/mla.yaml"
    for c in f.cells:
        c.slower("split=2", 0.97 if c.point["t_q"] <= 2 else 1.08)
        c.r["checks"] = [{"check": "identity", "arm": a, "status": "pass", "text": None, "against": "shipped"} for a in ("split=2", "split=4")]
        c.r["rerun"] = f"assay run suites/mla.yaml --filter 'kernel={c.kernel},kv={c.point['kv']},t_q={c.point['t_q']}'"
        c.r["measure"].update(peak_bytes_per_s=4.0e12, peak_flop_per_s=8.0e14, scrub_proven=True)
        c.r["work"] = {"bytes": 2.0e7, "least_bytes": 2.0e7, "flop": 4.0e8 * c.point["t_q"]}
        c.r["device_state"] = {"before": {"sm_mhz": 1980, "mem_mhz": 3201, "temperature_c": 41, "power_w": 310.5, "throttle": [], "other_processes": 0},
                               "after": {"sm_mhz": 1965, "mem_mhz": 3201, "temperature_c": 43, "power_w": 342.0, "throttle": [], "other_processes": 0},
                               "retries": 0}
    f.cell(Q, "kv=2048,t_q=4").fail("mismatch", "split=4", "3 of 131072 elements differ", "identity", against="shipped", tensor="out", differ=3,
                                    of=131072, ulp_max=1, first={"at": {"t": 2, "h": 17}, "index": 9, "got": 1.2300001, "want": 1.23,
                                                                 "got_bits": "3f9d70a5", "want_bits": "3f9d70a4"},
                                    launches=50, launches_differ=50, same_elements=True)
    f.cell(G, "kv=131072,t_q=8").slower("split=4", 1.2)
    f.cell(G, "kv=32768,t_q=8").fail("error", None, "killed by SIGSEGV in launch of split=4", "run").untimed()
    c = f.cell(G, "kv=2048,t_q=1").fail("wrong", "split=2", "worst 3.1 of the bound", "reference")
    c.r["waiver"] = {"id": "W-17", "expect": "wrong", "reason": "known since the summer", "until": "2027-01-31"}
    c = f.cell(G, "kv=2048,t_q=2")
    c.r["waiver"] = {"id": "W-18", "expect": "mismatch", "reason": "was racy", "until": None}
    f.cell(Q, "kv=131072,t_q=8").r["margin"] = 1.0
    for c in f.cells:
        for a, wide in (("shipped", 64), ("split=2", 64), ("split=4", 128)):
            c.code[a]["census"] = {"tool": "cuobjdump", "instructions": 900 + wide, "counts": {"matrix": wide, "load": 40, "other": 7 * (a != "split=2")}}
    f.write()
    judge(path)
    return path


def edit(path, change):
    """Reads a verdict file, hands each record to change, writes it again."""
    with open(path) as f:
        records = [json.loads(line) for line in f]
    for r in records:
        change(r)
    with open(path, "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)
