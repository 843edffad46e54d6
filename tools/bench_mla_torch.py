#!/usr/bin/env python3
"""The tensor library's side of mla-decode, beside assay's, on one GPU in one call.

    tools/bench_mla_torch.py --assay build/runner/assay --suite suites/mla-decode.yaml [-o ratios.json]

Both sides are timed in the same kind of bracket: a scrub of 512 MiB read and 512 MiB written, a start event, the launches and a stop
event are queued before anything is waited for; the output is preallocated; medians. assay's side is read from a verdict file
that the call makes (or from --verdicts FILE). Needs PyTorch with CUDA; nothing else here does.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile

H, R, D, K, KV = 64, 512, 256, 2048, 131072  # glm5-next of the suite; the library's times do not depend on kv
SCRUB_FLOATS = (512 << 20) // 4


def library_times(rounds):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False  # f32 means f32
    device = "cuda"
    source = torch.zeros(SCRUB_FLOATS, device=device)
    sink = torch.zeros(SCRUB_FLOATS, device=device)

    def median_us(launch):
        samples = []
        for i in range(rounds + 3):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.add(source, 1.0, out=sink)
            start.record()
            launch()
            stop.record()
            torch.cuda.synchronize()
            if i >= 3:
                samples.append(start.elapsed_time(stop) * 1e3)
        return statistics.median(samples)

    def uniform(*shape):
        return torch.rand(*shape, device=device) * 2 - 1

    wk, wv, cache = uniform(H, R, D), uniform(H, D, R), uniform(KV, R)
    scale = D ** -0.5
    times = {}
    for t in (1, 2, 4, 8):
        q, o_lat, q_lat = uniform(t, H, D), uniform(t, H, R), uniform(t, H, R)
        index = torch.randint(0, KV, (t, K), device=device)
        absorbed, values = torch.empty(H, t, R, device=device), torch.empty(H, t, D, device=device)

        def attention():
            rows = cache[index.view(-1)].view(t, K, R)
            weights = torch.softmax(torch.bmm(q_lat, rows.transpose(1, 2)) * scale, -1)
            return torch.bmm(weights, rows)

        times["mla.absorb_q", t] = median_us(lambda: torch.bmm(q.transpose(0, 1), wk.transpose(1, 2), out=absorbed))
        times["mla.decompress_v", t] = median_us(lambda: torch.bmm(o_lat.transpose(0, 1), wv.transpose(1, 2), out=values))
        times["mla.attn_gathered", t] = median_us(attention)
    return torch.__version__, torch.cuda.get_device_name(), times


def assay_times(path):
    """Median over depths of each arm's median, by (kernel, t_q); and the null-launch floor and the copy bandwidth."""
    found, header = {}, {}
    for line in open(path, encoding="utf-8"):
        record = json.loads(line)
        if record["kind"] == "header":
            header = record
        if record["kind"] != "cell":
            continue
        for arm in record["arms"]:
            samples = [s for s in arm.get("samples_ns") or [] if s is not None]
            if samples and arm["name"] != "null":
                key = record["kernel"], record["point"]["t_q"]
                found.setdefault(key, {}).setdefault(arm["name"], []).append(statistics.median(samples) / 1e3)
    calibration = header.get("calibration") or {}
    times = {key: {arm: statistics.median(us) for arm, us in arms.items()} for key, arms in found.items()}
    return times, calibration


def floor_us(kernel, t, calibration):
    """Bytes that must move over the measured copy bandwidth, and the null launch."""
    bandwidth, null = calibration.get("peak_bytes_per_s"), calibration.get("null_launch_ns")
    copy = (calibration.get("sentinels") or {}).get("copy")
    if copy:
        bandwidth = 2 * (512 << 20) / (statistics.median(copy) * 1e-9)
    if not bandwidth or not null or kernel == "mla.attn_gathered":
        return None
    return 4 * (H * R * D + t * H * (R + D)) / bandwidth * 1e6 + null / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="build/runner/assay")
    parser.add_argument("--suite", default="suites/mla-decode.yaml")
    parser.add_argument("--verdicts", help="read assay's side from this verdict file")
    parser.add_argument("--rounds", type=int, default=32)
    parser.add_argument("-o", "--output", help="write the figures as JSON")
    args = parser.parse_args()

    verdicts = args.verdicts
    if not verdicts:
        verdicts = tempfile.mkdtemp() + "/mla-decode.jsonl"
        status = subprocess.run([args.assay, "run", args.suite, "--backend", "cuda", "-q", "-o", verdicts], check=False)
        if status.returncode not in (0, 1, 3):
            sys.exit(f"bench_mla_torch: {args.assay} run ended with {status.returncode}")
    ours, calibration = assay_times(verdicts)
    version, device, library = library_times(args.rounds)

    print(f"{device}, PyTorch {version}, medians in us, scrubbed and hidden on both sides")
    print(f"{'kernel':18} {'t_q':>3} {'library':>8} {'shipped':>8} {'best':>8} {'best arm':12} {'ratio':>6} {'floor':>7} {'over':>6}")
    rows = []
    for (kernel, t), us in library.items():
        arms = ours.get((kernel, t))
        if not arms:
            continue
        best = min(arms, key=arms.get)
        floor = floor_us(kernel, t, calibration)
        over = arms[best] / floor if floor else None
        rows.append({"kernel": kernel, "t_q": t, "library_us": us, "arms_us": arms, "best": best, "ratio": us / arms[best],
                     "floor_us": floor})
        print(f"{kernel:18} {t:3} {us:8.2f} {arms.get('shipped', float('nan')):8.2f} {arms[best]:8.2f} {best:12} "
              f"{us / arms[best]:6.2f} {floor and f'{floor:7.2f}' or '      -'} {over and f'{over:6.2f}' or '     -'}")
    if args.output:
        with open(args.output, "w", encoding="utf-8") as out:
            json.dump({"device": device, "pytorch": version, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
