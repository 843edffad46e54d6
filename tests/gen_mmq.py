#!/usr/bin/env python3
"""The expected values of tests/test_mmq.c, from the definition, in exact rationals: no code of the project is used.

Prints the two tables of known answers: y of the s8 reading and of the e4m3 reading for m = 2, in_f = 96, out_f = 3.
"""
from fractions import Fraction as F

M, IN_F, OUT_F = 2, 96, 3


def byte(i):  # the test's own: no NaN code, every sign and size
    b = (i * 37 + 11) % 256
    return b ^ 1 if b in (0x7F, 0xFF) else b


def s8(b):
    return F(b - 256 if b > 127 else b)


def e4m3(b):
    e, f = b >> 3 & 15, b & 7
    v = F(8 + f) * F(2) ** (e - 10) if e else F(f) * F(2) ** -9
    return -v if b >> 7 else v


def dw(i, b):  # exact in f16
    return F(1 + (3 * i + b) % 5, 64)


def dx(j, b):
    return F(1 + (2 * j + b) % 7, 128)


for name, value in (("s32", s8), ("f32", e4m3)):
    print(f"static const double want_{name}[] = {{")
    for j in range(M):
        row = []
        for i in range(OUT_F):
            y = F(0)
            for b in range(IN_F // 32):
                s = sum(value(byte(i * IN_F + b * 32 + k)) * value(byte(1000 + 7 * (j * IN_F + b * 32 + k))) for k in range(32))
                y += dw(i, b) * dx(j, b) * s
            row.append(repr(float(y)))
        print("\t" + ", ".join(row) + ",")
    print("};")
