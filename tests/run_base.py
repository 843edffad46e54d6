"""run_base: what the tests of `assay run` from outside share. A test is run as `test_run_X.py ASSAY SOURCE_ROOT [TEST...]`.

Every verdict file that is read is held against the schema.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ASSAY, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

# What is ignored stays so in what we start: under nohup, or behind a shell's &, no run would end of a signal.
for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(sig) == signal.SIG_IGN:
        signal.signal(sig, signal.SIG_DFL)

# One case, of a kernel whose geometry is a name alone.
HEAD = '''\
assay: 1
suite: NAME
geometries:
  none: {}
distributions:
  unit: {fill: uniform, range: [-1, 1]}
timing: {rounds: 8, scrub: none, warmup: {launches: 1}}
cases:
  - id: c
    kernels: [KERNEL]
    geometry: none
    data: unit
'''

WORK = HEAD.replace('NAME', 'work').replace('KERNEL', 'probe.work') + '''\
    arms: {arms: [{more: 10}]}
    axes: {steps: {range: [STEPS, LAST], step: 10}}
    checks: {identity: {against: shipped}, regression: {select: shipped, against: shipped}}
rigs:
  - {match: {}, timing: diagnostic}
'''

FAULTS = '''\
assay: 1
suite: faults
geometries:
  g: {d: 96}
distributions:
  unit: {fill: uniform, range: [-1, 1]}
timing: {rounds: 8, scrub: none, warmup: {launches: 1}, timeout: 5s}
cases:
  - {id: before, kernels: [probe.faults], geometry: g, arms: {arms: [{split: 2}]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
  - {id: crash, kernels: [probe.faults], geometry: g, arms: {arms: [crash]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
  - {id: exits, kernels: [probe.faults], geometry: g, arms: {arms: [exits]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
  - {id: noise, kernels: [probe.faults], geometry: g, arms: {arms: [stdout_noise]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
  - {id: flip, kernels: [probe.faults], geometry: g, arms: {arms: [flip_bit]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
  - {id: after, kernels: [probe.faults], geometry: g, arms: {arms: [{split: 4}]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
'''


def work_suite(steps, cells):
    return WORK.replace('STEPS', str(steps)).replace('LAST', str(steps + 10 * (cells - 1)))


class RunBase(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='assay-run-')
        self.env = dict(os.environ, ASSAY_LOCK_DIR=self.dir, ASSAY_TAU_STORE=os.path.join(self.dir, 'state/tau.json'), NO_COLOR='1')
        for name in list(self.env):
            if name.startswith(('SLURM_', 'OMPI_', 'PMI_', 'GTEST_', 'TEST_', 'JOB_COMPLETION', 'ASSAY_SHARD')):
                del self.env[name]

    def tearDown(self):
        shutil.rmtree(self.dir)

    def get(self, name):
        with open(os.path.join(self.dir, name)) as f:
            return f.read()

    def put(self, name, text):
        with open(os.path.join(self.dir, name), 'w') as f:
            f.write(text)
        return name

    def assay(self, *args, expect=None, env=None, binary=None):
        p = subprocess.run([binary or ASSAY, *args], cwd=self.dir, env=dict(self.env, **(env or {})), capture_output=True,
                           text=True, timeout=100)
        if expect is not None:
            self.assertEqual(p.returncode, expect, '%s\n%s\n%s' % (args, p.stdout, p.stderr))
        return p

    def start(self, *args):
        return subprocess.Popen([ASSAY, *args], cwd=self.dir, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def records(self, name, valid=True):
        path = os.path.join(self.dir, name)
        if valid:
            p = subprocess.run([sys.executable, os.path.join(ROOT, 'tests/schema_check.py'), '--schema',
                                os.path.join(ROOT, 'schemas/verdict.schema.json'), path], capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stdout[:2000])
        with open(path) as f:
            return [json.loads(line) for line in f if line.endswith('\n')]

    def cells(self, name, valid=True):
        return [r for r in self.records(name, valid) if r['kind'] == 'cell']

    def wait_for_cells(self, name, n):
        end = time.monotonic() + 100
        while time.monotonic() < end:
            try:
                if sum(r['kind'] == 'cell' for r in self.records(name, valid=False)) >= n:
                    return
            except (FileNotFoundError, ValueError):
                pass
            time.sleep(0.01)
        self.fail('no %d cells appeared in %s' % (n, name))

    def check_complete(self, name, cells):
        records = self.records(name)
        last = {r['id']: r for r in records if r['kind'] == 'cell'}
        self.assertEqual(len(last), cells)
        self.assertTrue(all(r['status'] == 'pass' for r in last.values()))
        self.assertEqual(records[-1]['kind'], 'footer')
        self.assertEqual(sum(r['kind'] == 'header' for r in records), 1)
        self.assertEqual(sum(r['kind'] == 'footer' for r in records), 1)
        self.assertEqual(records[-1]['counts']['pass'], cells)
        return records

    def rewrite(self, name, change):
        """The file without what stands after its cells, each cell changed."""
        records = [r for r in self.records(name) if r['kind'] in ('header', 'cell')]
        for i, c in enumerate(r for r in records if r['kind'] == 'cell'):
            change(i, c)
        self.put(name, ''.join(json.dumps(r, separators=(',', ':')) + '\n' for r in records))


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
