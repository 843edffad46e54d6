#!/usr/bin/env python3
"""Times PyTorch's int8 and fp8 matrix products on the shapes of suites/accprobe.yaml, to set beside the arms of mmq.

They have one scale a tensor and no fold, so they are what the matrix instructions allow with 8-bit operands, not a rival for the same
work. Medians of REPS launches between device events, after a warm-up, in the order of the table.

usage: bench_mmq_torch.py [REPS]
"""
import statistics
import sys

import torch

SHAPES = {
    "27b": [("q_proj", 5120, 12288), ("kv_proj", 5120, 1024), ("o_proj", 6144, 5120),
            ("gate_up_proj", 5120, 17408), ("down_proj", 17408, 5120), ("square_ref", 5120, 5120)],
}


def median_ms(f, reps):
    f()
    torch.cuda.synchronize()
    times = []
    for _ in range(reps):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        f()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return statistics.median(times)


def main():
    reps = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"torch {torch.__version__}  {torch.cuda.get_device_name()}  reps={reps}")
    print(f"{'shape':<14} {'in_f':>6} {'out_f':>6} {'m':>6} {'int8 ms':>9} {'TOP/s':>8} {'fp8 ms':>9} {'TFLOP/s':>8}")
    one = torch.ones((), device="cuda")
    for name, in_f, out_f in SHAPES["27b"]:
        for m in (512, 6257):
            pad = (m + 15) // 16 * 16  # fp8 wants multiples of 16
            x = torch.randint(-126, 127, (pad, in_f), dtype=torch.int8, device="cuda")
            w = torch.randint(-126, 127, (out_f, in_f), dtype=torch.int8, device="cuda")
            x8, w8 = (t.to(torch.float32).div(126).to(torch.float8_e4m3fn) for t in (x, w))
            int8 = median_ms(lambda: torch._int_mm(x, w.t()), reps)
            fp8 = median_ms(lambda: torch._scaled_mm(x8, w8.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16), reps)
            flop = 2e-9 * m * in_f * out_f
            print(f"{name:<14} {in_f:>6} {out_f:>6} {m:>6} {int8:>9.4f} {flop / int8:>8.1f} {fp8:>9.4f} {flop / fp8:>8.1f}")


if __name__ == "__main__":
    main()
