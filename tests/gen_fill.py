#!/usr/bin/env python3
"""Expected values of fills, from the definitions in words (fill_gen.h, and the seed documents' formulas), in Python's
own integers, floats and fractions; not a port of the C code. Writes data/fill.json. Run it from anywhere."""
import json, os, struct
from fractions import Fraction
from statistics import NormalDist

M64 = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


def mix(x):
    x &= M64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def text_hash(s):
    if s is None:
        return 0
    h = 0xCBF29CE484222325
    for b in s.encode():
        h = (h ^ b) * 0x100000001B3 & M64
    return mix(h)


def key(seed, kernel, tensor, field, input_set):
    k = mix(seed + G)
    for s in (kernel, tensor, field):
        k = mix(k + text_hash(s))
    return mix(k + input_set * G)


def row_key(k, coords):
    k = mix(k + G)
    for c in coords:
        k = mix(k + (c + 1) * G)
    return k


def draw(k, coords):
    return mix(row_key(k, coords[:-1]) + coords[-1] * G)


# ---- formats, by going through all numbers they have
def code_values(exp_bits, man_bits, has_inf):
    """Sorted [(value, code)] of the numbers >= 0."""
    bias = 2 ** (exp_bits - 1) - 1
    out = []
    for code in range(1 << (exp_bits + man_bits)):
        e, m = code >> man_bits, code & ((1 << man_bits) - 1)
        if e == (1 << exp_bits) - 1 and (has_inf or m == (1 << man_bits) - 1):
            continue
        v = Fraction(m, 1 << man_bits) + (1 if e else 0)
        v *= Fraction(2) ** ((e if e else 1) - bias)
        out.append((v, code))
    return out


FORMATS = {'f16': (5, 10, True), 'bf16': (8, 7, True), 'e4m3': (4, 3, False), 'e5m2': (5, 2, True)}
TABLES = {n: code_values(*f) for n, f in FORMATS.items()}


def nearest(fmt, x):
    """Code of the nearest number, ties to the even code."""
    e, m, _ = FORMATS[fmt]
    sign = 1 << (e + m) if x < 0 or (x == 0 and str(x)[0] == '-') else 0
    ax, t = abs(Fraction(x)), TABLES[fmt]
    lo, hi = 0, len(t) - 1
    if ax >= t[hi][0]:
        return sign | t[hi][1]
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if t[mid][0] <= ax:
            lo = mid
        else:
            hi = mid
    a, b = ax - t[lo][0], t[hi][0] - ax
    pick = lo if a < b or (a == b and t[lo][1] % 2 == 0) else hi
    return sign | t[pick][1]


def f32(x):
    return struct.unpack('<f', struct.pack('<f', x))[0]


def bits(fmt, x):
    if fmt == 'f64':
        return struct.unpack('<Q', struct.pack('<d', x))[0]
    if fmt == 'f32':
        return struct.unpack('<I', struct.pack('<f', x))[0]
    c = nearest(fmt, x)
    if fmt == 'f16':
        assert c == struct.unpack('<H', struct.pack('<e', x))[0]
    return c


def uniform(fmt, lo, hi, d):
    v = lo + (hi - lo) * ((d >> 11) * 2.0 ** -53)
    return bits(fmt, v)  # the ranges below have their ends apart from every draw's rounding


def coords_of(i, dims):
    out = []
    for d in reversed(dims):
        out.append(i % d)
        i //= d
    return out[::-1]


def permute(k, n, x):
    """Alternating Feistel over 2^bits >= n, four double rounds, walked until below n."""
    if n < 2:
        return 0
    b = (n - 1).bit_length()
    left, right = b // 2, b - b // 2
    while True:
        l, r = x >> right, x % (1 << right)
        for j in range(4):
            l ^= (mix(k + (4 * j + 1) * G + r) >> 17) % (1 << left)
            r ^= (mix(k + (4 * j + 3) * G + l) >> 17) % (1 << right)
        x = l << right | r
        if x < n:
            return x


# ---- the seed documents
def lcg64(seed, n):
    s = seed | 1
    for _ in range(n):
        s = (s * 6364136223846793005 + 1442695040888963407) & M64
    return s


def jump(s, a, c, n, mod):
    """n steps at once: the closed form with the geometric sum taken modulo (a - 1) * mod."""
    an = pow(a, n, (a - 1) * mod)
    return (s * an + c * ((an - 1) // (a - 1))) % mod


def randf(seed, i):
    s = jump(seed | 1, 6364136223846793005, 1442695040888963407, i + 1, 1 << 64)
    return f32(f32(float(f32(float(s >> 33))) / f32(f32(float(0xFFFFFFFF)) / 2.0)) - 1.0)


def randidx(seed, i, bound):
    return (jump(seed | 1, 6364136223846793005, 1442695040888963407, i + 1, 1 << 64) >> 33) % bound


def lcg32(seed, i):
    return jump(seed, 1664525, 1013904223, i + 1, 1 << 32)


assert jump(5 | 1, 6364136223846793005, 1442695040888963407, 9, 1 << 64) == lcg64(5, 9)


def wide(seed, i):
    return ((lcg32(seed, i) >> 17) % 253 - 126) & 255


def mid(seed, i):
    s = lcg32(seed, i)
    return (0x30 + (s >> 17) % 0x20) | (s >> 9 & 1) << 7


def pattern(base, step, modulus, total):
    return f32(f32(base) + f32(f32(float(total % modulus)) * f32(step)))


cases = []
K = key(0xB200, 'mla.absorb_q', 'q_nope', None, 0)


def case(name, dtype, dims, spec, value, at=None, **more):
    n = 1
    for d in dims:
        n *= d
    at = list(range(min(n, 12))) + [n - 1] if at is None else at
    cases.append(dict(name=name, dtype=dtype, dims=dims, spec=spec, at=at, want=['%x' % value(i) for i in at],
                      key='%x' % K, **more))


D3 = [3, 5, 7]
for fmt in ('f64', 'f32', 'f16', 'bf16', 'e4m3', 'e5m2'):
    case('uniform ' + fmt, fmt, D3, dict(kind='uniform', range=[-0.9, 1.1]),
         lambda i, fmt=fmt: uniform(fmt, -0.9, 1.1, draw(K, coords_of(i, D3))))
case('uniform -1..1', 'f32', [1000], dict(kind='uniform', range=[-1, 1]),
     lambda i: uniform('f32', -1.0, 1.0, draw(K, [i])), at=[0, 1, 2, 500, 999])
case('uniform integers', 's32', D3, dict(kind='uniform', range=[-5, 17]),
     lambda i: (-5 + (draw(K, coords_of(i, D3)) * 22 >> 64)) & 0xFFFFFFFF)
case('bytes', 'e4m3', D3, dict(kind='bytes', magnitude=[0x30, 0x4F]),
     lambda i: (lambda d: d >> 63 << 7 | 0x30 + ((d << 1 & M64) * 0x20 >> 64))(draw(K, coords_of(i, D3))))


def bytes_f32(i):
    c, out = coords_of(i, D3), 0
    for b in range(4):
        d = mix(row_key(K, c[:-1]) + (c[-1] * 4 + b) * G)
        out |= (d >> 63 << 7 | (d << 1 & M64) * 127 >> 64) << 8 * b
    return out


case('bytes of f32', 'f32', D3, dict(kind='bytes', magnitude=[0, 126]), bytes_f32)
case('constant', 'bf16', [4], dict(kind='constant', value=0.3), lambda i: bits('bf16', 0.3))
case('indices', 's32', [4, 64], dict(kind='indices', repeats=True),
     lambda i: draw(K, coords_of(i, [4, 64])) * 2048 >> 64, bound=2048)
case('indices without repeats', 's32', [4, 64], dict(kind='indices', repeats=False),
     lambda i: permute(row_key(K, [i // 64]), 1000, i % 64), bound=1000)
case('permutation', 'u16', [4, 321], dict(kind='permutation'), lambda i: permute(row_key(K, [i // 321]), 321, i % 321))
case('k_hot', 'f32', [4, 32], dict(kind='k_hot', k=5, value=2.5),
     lambda i: bits('f32', 2.5) if permute(row_key(K, [i // 32]), 32, i % 32) < 5 else 0, at=list(range(128)))
case('weight scales', 'f16', [40, 9], dict(kind='pattern', base=0.01, step=0.003, modulus=7),
     lambda i: bits('f16', pattern(0.01, 0.003, 7, sum(coords_of(i, [40, 9])))), at=list(range(20)))
case('activation scales', 'f32', [10, 6, 4], dict(kind='pattern', base=0.0125, step=0.0037, modulus=5),
     lambda i: bits('f32', pattern(0.0125, 0.0037, 5, sum(coords_of(i, [10, 6, 4])))), at=list(range(30)))
FAR = [0, 1, 2, 3, 4, 5, 6, 7, 16383, 16384, 16385, 50000, 99999]
for seed in (0xB2000001 ^ 1, 0xB2000007 ^ 262144):
    case('randf %x' % seed, 'f32', [100000], dict(kind='seed_lcg64_f32'), lambda i, s=seed: bits('f32', randf(s, i)), at=FAR,
         lcg='%x' % (seed | 1))
s8 = 0xB2000008 ^ 4 ^ 32768
case('randidx', 's32', [100000], dict(kind='seed_lcg64_index'), lambda i: randidx(s8, i, 32768), at=FAR, bound=32768,
     lcg='%x' % (s8 | 1))
case('wide activations', 's8', [100000], dict(kind='seed_lcg32_wide'), lambda i: wide(0x9E3779B9, i), at=FAR,
     lcg='%x' % 0x9E3779B9)
case('wide weights', 'e4m3', [100000], dict(kind='seed_lcg32_wide'), lambda i: wide(0x12345678, i), at=FAR,
     lcg='%x' % 0x12345678)
case('mid weights', 'u8', [100000], dict(kind='seed_lcg32_mid'), lambda i: mid(0x12345678, i), at=FAR,
     lcg='%x' % 0x12345678)

normal = []
nd = NormalDist()
for c in range(200):
    d = draw(K, [c])
    p = Fraction(2 * (d >> 11) + 1, 1 << 54)
    normal.append(nd.inv_cdf(float(p)) if p < Fraction(1, 2) else -nd.inv_cdf(float(1 - p)))


# ---- digest
def hash_word(w, i):
    w = (w + (i + 1) * G) * 0xBF58476D1CE4E5B9 & M64
    return (w ^ w >> 32) * 0x94D049BB133111EB & M64


def digest(data):
    total = 0
    for j in range(0, len(data), 65536):
        block = data[j:j + 65536]
        padded = block + bytes(-len(block) % 8)
        s = sum(hash_word(int.from_bytes(padded[8 * i:8 * i + 8], 'little'), i) for i in range(len(padded) // 8)) & M64
        total += hash_word(mix(s ^ (len(block) * G & M64)), j // 65536)
    return mix(mix(total & M64) + len(data) * G)


DATA = bytes((i * 131 + i // 251) & 255 for i in range(200003))
digests = [[n, '%x' % digest(DATA[:n])] for n in (0, 1, 7, 8, 9, 1000, 65535, 65536, 65537, 131072, 200003)]

codes = {}
for fmt in FORMATS:
    xs = [0.0, -0.0, 1.0, -1.0, 1 / 3, 2 / 3, 0.1, 1e-3, 1e-7, 5.960464477539063e-08, 2.9802322387695312e-08,
          2.980232238769532e-08, 6.103515625e-05, 6.1e-05, 447.9, 448.0, 240.5, 0.001953125, 0.0009765625, 0.0009765626, 0.0146,
          17.0, 18.0, 19.0, 1.0625, 1.1875, 1.00390625, 1.01171875, 3.3895313892515355e38 if fmt == 'bf16' else 440.0]
    codes[fmt] = [['%x' % bits('f64', x), '%x' % nearest(fmt, x)] for x in xs]

out = dict(made_by='tests/gen_fill.py',
           keys=[['%x' % key(1, 'a.b', 't', None, 0), 1, 'a.b', 't', None, 0],
                 ['%x' % key(0xB200, 'mmq.q8_0', 'w', 'qs', 1), 0xB200, 'mmq.q8_0', 'w', 'qs', 1]],
           cases=cases, normal=dict(key='%x' % K, want=normal), digests=digests, codes=codes)
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data', 'fill.json')
with open(path, 'w') as f:
    f.write('{\n' + ',\n'.join('%s: %s' % (json.dumps(k), json.dumps(v)) for k, v in out.items()) + '\n}\n')
