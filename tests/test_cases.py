#!/usr/bin/env python3
"""test_cases.py SOURCE_ROOT: every test that docs/cases.md names exists, in the file that it names.

What may stand in the column "held by", separated by commas or semicolons:
  t/x:name       a test of tests/test_x.c
  run:name       one of tests/test_run*.py; plugin:name one of tests/test_plugin.py
  cli:name       a folder of tests/cli; bad:name and good:name a suite of tests/bad, tests/good
  must-fail a    a subject of suites/selftest.yaml, and so are the words after it
  selftest `a`   a part of `assay selftest`
  `tools/x`      a program of the source tree
  none           nothing holds it; the last column says why
"""
import glob
import os
import re
import sys
import unittest

ROOT = os.path.abspath(sys.argv[1])


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


def rows(text):
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip('|').split('|')]
        if re.match(r'^\| [A-Z]\d', line):
            yield cells


def has(pattern, paths):
    return any(re.search(pattern, read(p)) for p in paths)


def missing(held):
    """What of a row's third column does not exist, as words."""
    subject = part = False
    for word in re.split(r'[,;]\s*', re.sub(r'\s*\([^)]*\)', '', held)):
        word = word.strip()
        subject = word.startswith('must-fail ') or (subject and ':' not in word and '`' not in word)
        part = word.startswith('selftest `') or (part and re.match(r'^`\w+`$', word) is not None)
        m = re.match(r'^(?:t/)?(\w+):(\w[\w-]*)$', word)
        name = m and m.group(2)
        if word == 'none' and word == held:
            ok = True
        elif m and word.startswith('t/'):
            path = 'tests/test_%s.c' % m.group(1)
            ok = os.path.exists(os.path.join(ROOT, path)) and has(r'START_TEST\(%s\)' % name, [path])
        elif m and m.group(1) in ('run', 'plugin'):
            ok = has(r'def %s\(' % name, glob.glob(os.path.join(ROOT, 'tests/test_%s*.py' % m.group(1))))
        elif m and m.group(1) == 'cli':
            ok = os.path.exists(os.path.join(ROOT, 'tests/cli', name, 'cmd'))
        elif m and m.group(1) in ('bad', 'good'):
            ok = os.path.exists(os.path.join(ROOT, 'tests', m.group(1), name + '.yaml'))
        elif subject:
            ok = has(r'(id|arms?): [^\n]*\b%s\b' % re.escape(word.replace('must-fail ', '')), ['suites/selftest.yaml'])
        elif part:
            ok = has(r'\b%s\b' % word.split('`')[1], ['runner/selftest.c', 'runner/selftest_timing.c', 'runner/cmd_selftest.c'])
        elif re.match(r'^`[\w/.-]*/[\w.-]+`$', word):
            ok = os.path.exists(os.path.join(ROOT, word.strip('`')))
        else:
            ok = word == '`assay selftest`'
        if not ok:
            yield word


class Cases(unittest.TestCase):
    def test_it_can_fail(self):
        for bad in ('t/fill:no_such', 't/nosuch:name', ':exits', 'run:test_nosuch', 'cli:nosuch', 'bad:nosuch', 'must-fail nosuch',
                    't/fill:values_as_defined, none', 'selftest `nosuch`', '`tools/nosuch`', 'words'):
            self.assertNotEqual(list(missing(bad)), [], bad)
        self.assertEqual(list(missing('t/fill:values_as_defined, cli:merge; must-fail crash')), [])

    def test_every_test_named_exists(self):
        seen = set()
        for cells in rows(read('docs', 'cases.md')):
            self.assertEqual(len(cells), 4, cells)
            self.assertNotIn(cells[0], seen)
            seen.add(cells[0])
            self.assertEqual(list(missing(cells[2])), [], cells[0])
            self.assertTrue(cells[3], cells[0])
        self.assertGreater(len(seen), 30)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
