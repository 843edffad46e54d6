#!/usr/bin/env python3
"""tools/sass-cost on stored machine code, against what was counted in it by hand. usage: test_sass_cost.py SOURCE"""
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))
TOOL = ROOT / 'tools' / 'sass-cost'
SAMPLE = (ROOT / 'tests' / 'data' / 'sass-sm90a.txt').read_text()


def run(text, *args):
    r = subprocess.run([sys.executable, str(TOOL), *args], input=text, capture_output=True, text=True, timeout=60)
    return r.returncode, r.stdout, r.stderr


def number(text, pattern):
    return float(re.search(pattern, text).group(1))


class SassCost(unittest.TestCase):
    def test_loop(self):
        rc, out, _ = run(SAMPLE)
        self.assertEqual(rc, 0)
        self.assertIn('loop of 38 instructions, 2 IMMA', out)
        self.assertNotIn('none', out)  # a function without a loop is passed over
        self.assertEqual(number(out, r'issue ([\d.]+)'), 19)
        for name, n in (('FFMA', 4), ('FADD', 2), ('convert', 2), ('global', 1.5), ('FMUL', 0.5), ('matrix', 1), ('uniform', 1.5)):
            self.assertEqual(number(out, name + r' ([\d.]+)'), n, name)
        # The first IMMA reads 4 + 2 + 4; the second has the same A, kept, and no C.
        self.assertEqual(number(out, r'\(([\d.]+) registers read'), 6)
        self.assertEqual(number(out, r'stall ([\d.]+)'), 42)  # 84 of the control bits

    def test_reads(self):
        _, out, _ = run(SAMPLE, '-v', 'small')
        reads = {m[1]: int(m[0]) for m in re.findall(r'reads +(\d+)  (.*)', out)}
        self.assertEqual(reads['FFMA R12, R0.reuse, R12, R9.reuse'], 3)
        self.assertEqual(reads['FFMA R13, R0.reuse, R13, R9.reuse'], 1)
        self.assertEqual(reads['FFMA R8, R0.reuse, R15, R9'], 3)  # a FADD came between
        self.assertEqual(reads['FFMA R23, R0, R13, R23'], 2)
        self.assertEqual(reads['LDG.E R18, desc[UR6][R16.64+0x10]'], 2)
        self.assertEqual(reads['MOV R12, 0x4b400000'], 0)

    def test_reuse_counts(self):
        """Without the bit that keeps A, the second IMMA reads it again. The bit is in the control word, not only in the text."""
        _, before, _ = run(SAMPLE)
        lines = SAMPLE.split('\n')
        at = next(i for i, l in enumerate(lines) if 'IMMA.16832.S8.S8 R12, R4.reuse' in l) + 1
        word = int(re.search(r'0x([0-9a-f]{16})', lines[at]).group(1), 16)
        self.assertEqual(word >> 58 & 15, 1)
        lines[at] = re.sub(r'0x[0-9a-f]{16}', '0x%016x' % (word & ~(15 << 58)), lines[at])
        _, after, _ = run('\n'.join(lines))
        self.assertEqual(number(after, r'\(([\d.]+) registers read'), 8)
        self.assertGreater(number(after, r'= +([\d.]+)'), number(before, r'= +([\d.]+)'))

    def test_nothing(self):
        for text, args in ((SAMPLE, ('no_such',)), (SAMPLE, ('-m', 'HMMA')), ('', ())):
            rc, out, err = run(text, *args)
            self.assertEqual((rc, out), (1, ''))
            self.assertIn('no loop with', err)
        rc, _, err = run(SAMPLE, '-x')
        self.assertEqual(rc, 2)
        self.assertIn('no option -x', err)


if __name__ == '__main__':
    unittest.main()
