#!/usr/bin/env python3
"""test_width.py ASSAY SOURCE_ROOT: what people read is at most 100 columns wide: every --help, every table and text.

What is not held to it, and why:
  commands       rerun and next lines: they are copied whole
  the last line  it alone goes into a chat message
  messages       `assay VERB: ...` and FILE:LINE:COL: one sentence a line, for grep
  cell ids       a list has a line a cell
  other formats  JSON, CSV, HTML, XML, Markdown, C; and so the cases of `report`
"""
import os
import re
import subprocess
import sys
import unittest

ASSAY, ROOT = None, None
WIDTH = 100
OWN_SCRIPTS = {'accprobe-planted', 'diff-fail-on', 'merge', 'ratio-controls', 'suites-together'}  # these print what their own script makes of the records
EXCEPT = [
    re.compile(r'^ *(rerun|next) +assay '),
    re.compile(r'^(PASS|FAIL|INCOMPLETE|INTERRUPTED|NOTHING RUN|CUT SHORT|REGRESSION|UNDECIDED)  '),
    re.compile(r'^(assay[ :]|hint: |[^ ]+:\d+(:\d+)?: |[^ ]+: error: )'),
    re.compile(r'^[^ ]+(/[^ /]+){4,}'),
    re.compile(r'^[{<|\[]|^ *<|^- \d|^ *"[a-z_]+":|^\*\*|^/\*|^ \*'),
    re.compile(r'^("[^"]*"|[^ ,]+)(,("[^"]*"|[^,]*)){5,}$'),
    re.compile(r'^[-+?!x*b~w<>=] .*\|.*\||^ [^ ]'),  # a row of Markdown, or a page without its tags
]


def too_wide(text):
    return [line for line in text.splitlines() if len(line) > WIDTH and not any(e.search(line) for e in EXCEPT)]


class Width(unittest.TestCase):
    def check(self, name, text):
        wide = too_wide(text)
        self.assertEqual(wide, [], '%s: %d columns' % (name, len(wide[0]) if wide else 0))

    def assay(self, *args):
        p = subprocess.run([ASSAY, *args], cwd=ROOT, env=dict(os.environ, NO_COLOR='1'), capture_output=True, text=True, timeout=100)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue(p.stdout, args)
        self.check(' '.join(args), p.stdout)
        return p.stdout

    def test_it_can_fail(self):
        self.assertEqual(len(too_wide('x' * 101 + '\nrerun     assay run ' + 'x' * 100 + '\nshort\n')), 1)

    def test_help(self):
        top = self.assay('--help')
        verbs = re.findall(r'^  ([a-z][a-z-]*) ', top, re.M)
        self.assertGreater(len(verbs), 10)
        for verb in verbs:
            self.assay(verb, '--help')

    def test_golden(self):
        folder = os.path.join(ROOT, 'tests/cli')
        cases = sorted(os.listdir(folder))
        self.assertLessEqual(OWN_SCRIPTS, set(cases))
        for case in cases:
            path = os.path.join(folder, case, 'out')
            if case not in OWN_SCRIPTS and not case.startswith('report') and os.path.exists(path):
                with open(path) as f:
                    self.check(path, f.read())

    def test_text(self):
        for path in ('tests/data/show.jsonl', 'results/h200/mla-decode.jsonl', 'results/h200/selftest.jsonl'):
            # A table of every cell of 36 cases with names of their own has columns for all of them.
            for how in ([], ['-q']) if 'selftest' in path else ([], ['-v'], ['-q']):
                self.assay('show', *how, path)
        self.assay('table', 'suggest', 'results/h200/mla-decode.jsonl', '-o', '/dev/null')
        self.assay('table', 'suggest', 'results/h200/mla-decode.jsonl')
        self.assay('list')
        self.assay('list', 'suites/smoke.yaml')
        self.assay('explain', 'suites/mla-decode.yaml', 'kernel=mla.attn_gathered,t_q=1,kv=2048', '--backend', 'host')


if __name__ == '__main__':
    ASSAY, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
