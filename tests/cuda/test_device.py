#!/usr/bin/env python3
"""test_device.py ASSAY: the cuda backend on a GPU, from outside. No assertion depends on a time.

Run by run.sh; a test by its name: test_device.py ASSAY Device.test_faults
"""
import array
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ASSAY = None
FAULTS = {  # case: (status, what the record must say)
    'right': ('pass', ''), 'ulp': ('mismatch', ''), 'tail': ('wrong', ''), 'nothing': ('wrong', ''), 'overrun': ('wrong', ''),
    'underrun': ('wrong', ''), 'input': ('wrong', ''), 'over_read': ('wrong', ''), 'late': ('invalid', 'stream'), 'crash': ('error', 'illegal'),
    'asserts': ('error', 'assert'), 'hang': ('timeout', ''), 'after': ('pass', ''),
}


def write_npy(path, shape, seed):
    """Floats of f32 in -1 .. 1, without a library."""
    count = 1
    for n in shape:
        count *= n
    values = array.array('f')
    for _ in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append((seed >> 40) / 2**23 - 1)
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
    head += ' ' * (-(10 + len(head) + 1) % 64) + '\n'
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + len(head).to_bytes(2, 'little') + head.encode())
        values.tofile(f)


class Device(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='assay-cuda-')
        for name in os.listdir(HERE):
            if name.endswith('.yaml'):
                shutil.copy(os.path.join(HERE, name), self.dir)
        write_npy(os.path.join(self.dir, 'q.npy'), (3, 5, 40), 1)
        write_npy(os.path.join(self.dir, 'w.npy'), (5, 96, 40), 2)
        self.env = dict(os.environ, ASSAY_LOCK_DIR=self.dir, ASSAY_TAU_STORE=os.path.join(self.dir, 'tau.json'), NO_COLOR='1')

    def tearDown(self):
        shutil.rmtree(self.dir)

    def assay(self, *args, expect=0, env=None):
        p = subprocess.run([ASSAY, *args], cwd=self.dir, env=dict(self.env, **(env or {})), capture_output=True, text=True, timeout=300)
        if expect is not None:
            self.assertEqual(p.returncode, expect, '%s\n%s\n%s' % (args, p.stdout, p.stderr))
        return p

    def run_suite(self, suite, *args, out='out.jsonl', backend='cuda', **more):
        return self.assay('run', suite, '--backend', backend, '-o', out, '--force', *args, **more)

    def records(self, name='out.jsonl'):
        with open(os.path.join(self.dir, name)) as f:
            return [json.loads(line) for line in f if line.endswith('\n')]

    def cells(self, name='out.jsonl'):
        return [r for r in self.records(name) if r['kind'] == 'cell']

    # ---- the planted faults ---------------------------------------------------------------------------------------------

    def test_faults(self):
        self.run_suite('faults.yaml', expect=1)
        cells = {c['case']: c for c in self.cells()}
        self.assertEqual(set(cells), set(FAULTS))
        for case, (status, words) in FAULTS.items():
            with self.subTest(case):
                self.assertEqual(cells[case]['status'], status, json.dumps(cells[case])[:2000])
                self.assertIn(words, json.dumps([cells[case]['reason'], cells[case]['checks']]).lower())
        self.assertEqual(self.records()[-1]['exit'], 1)

    def test_outputs_that_stay_on_the_device(self):
        """Above 4 MiB they are compared where they are: the statuses and the hashes of honest arms are the host's."""
        said = {}
        for backend in ('cuda', 'host'):
            self.run_suite('large.yaml', backend=backend, expect=1)
            cells = {c['case']: c for c in self.cells()}
            said[backend] = {
                case: (c['status'], [a['out_sha256'] for a in c['arms'] if a['name'] in ('shipped', 'split=2', 'split=4')])
                for case, c in cells.items()}
            self.assertEqual({case: s for case, (s, _) in said[backend].items()},
                             {'right': 'pass', 'ulp': 'mismatch', 'tail': 'wrong', 'nothing': 'wrong', 'over_read': 'wrong'})
            ulp = [k for k in cells['ulp']['checks'] if k['check'] == 'identity' and k['arm'] == 'ulp']
            self.assertEqual([(k['differ'], k['of'], k['ulp_max']) for k in ulp], [(1, 2097173, 1)])
        self.assertEqual(said['cuda'], said['host'])

    def test_an_error_names_its_cell_and_no_other(self):
        p = self.run_suite('faults.yaml', '--filter', 'case=crash', '--filter', 'case=after', expect=3)
        crash = [line for line in p.stdout.splitlines() + p.stderr.splitlines() if 'illegal' in line.lower()]
        self.assertTrue(crash, p.stdout + p.stderr)
        told = [c['case'] for c in self.cells() if 'illegal' in json.dumps([c['reason'], c['checks']]).lower()]
        self.assertEqual(told, ['crash'])

    # ---- inputs ----------------------------------------------------------------------------------------------------------

    def test_inputs_are_the_hosts(self):
        for suite in ('fills.yaml', 'npy.yaml'):
            self.run_suite(suite, out='cuda.jsonl')
            self.run_suite(suite, out='host.jsonl', backend='host')
            device, host = self.cells('cuda.jsonl'), self.cells('host.jsonl')
            self.assertEqual([c['id'] for c in device], [c['id'] for c in host])
            for d, h in zip(device, host):
                with self.subTest(d['id']):
                    self.assertEqual(d['data_audit'], h['data_audit'])
                    self.assertTrue(any(int(t['digest'], 16) for t in d['data_audit'].values()))

    # ---- forms of arms ---------------------------------------------------------------------------------------------------

    def test_graphs_and_environments(self):
        self.run_suite('graphs.yaml')
        for c in self.cells():
            with self.subTest(c['id']):
                arms = {a['name']: a for a in c['arms']}
                for name in ('split=4', 'split-graph', 'shipped-graph', 'split-env'):
                    self.assertIsNone(arms[name]['unsupported'])
                    self.assertEqual(arms[name]['out_sha256'], arms['shipped']['out_sha256'])
                    self.assertTrue(arms[name]['samples_ns'])

    def test_shapes_against_the_reference(self):
        self.run_suite('shapes.yaml')
        for c in self.cells():
            self.assertIn('pass', [k['status'] for k in c['checks'] if k['check'] == 'reference'], c['id'])

    # ---- which device ----------------------------------------------------------------------------------------------------

    def device(self, **more):
        self.run_suite('npy.yaml', **more)
        return self.records()[0]['device']

    def test_device_by_index_uuid_and_name(self):
        first = self.device()
        for wanted in ('0', first['uuid'], first['uuid'][:12].lower()):
            self.run_suite('npy.yaml', '--device', wanted)
            self.assertEqual(self.records()[0]['device']['uuid'], first['uuid'], wanted)
        p = self.run_suite('npy.yaml', '--device', first['name'].split()[-1], expect=None)
        self.assertTrue(p.returncode == 0 or 'may be any of' in p.stderr, p.stderr)
        for wanted in ('99', 'GPU-0000', 'no such name', ''):
            p = self.run_suite('npy.yaml', '--device', wanted, expect=2)
            self.assertIn("no device '%s'" % wanted, p.stderr)
            self.assertEqual(p.stderr.count('cuda:'), 1, p.stderr)

    def test_visible_devices(self):
        uuid = self.device()['uuid']
        for visible in (uuid, '0'):
            self.assertEqual(self.device(env={'CUDA_VISIBLE_DEVICES': visible})['uuid'], uuid)
        for visible in ('', '-1', 'GPU-00000000-0000-0000-0000-000000000000'):
            p = self.run_suite('npy.yaml', env={'CUDA_VISIBLE_DEVICES': visible}, expect=2)
            self.assertIn("CUDA_VISIBLE_DEVICES is '%s'" % visible, p.stderr)

    # ---- other runs and signals ------------------------------------------------------------------------------------------

    def start(self, out):
        p = subprocess.Popen([ASSAY, 'run', 'work.yaml', '--backend', 'cuda', '-o', out], cwd=self.dir, env=self.env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        for _ in range(6000):
            if os.path.exists(os.path.join(self.dir, out)) and sum(r['kind'] == 'cell' for r in self.records(out)) >= 2:
                return p
            self.assertIsNone(p.poll())
            time.sleep(0.01)
        self.fail('no cell appeared')

    def test_one_run_a_device(self):
        first = self.start('first.jsonl')
        p = self.run_suite('npy.yaml', '--no-wait', expect=2)
        self.assertIn('pid', p.stderr)
        p = self.run_suite('npy.yaml')  # waits
        self.assertIn('waiting for', p.stderr)
        self.assertEqual(first.wait(), 0)

    def test_interrupted_and_resumed(self):
        p = self.start('a.jsonl')
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(), 130)
        foot = self.records('a.jsonl')[-1]
        self.assertEqual((foot['kind'], foot['exit']), ('footer', 130))
        self.assertEqual(foot['not_run'], 20 - len(self.cells('a.jsonl')))
        self.assay('run', 'work.yaml', '--backend', 'cuda', '-o', 'a.jsonl', '--resume')
        self.assertEqual({c['id'] for c in self.cells('a.jsonl')}, {c['id'] for c in self.cells('a.jsonl') if c['status'] == 'pass'})
        self.assertEqual(len({c['id'] for c in self.cells('a.jsonl')}), 20)

    # ---- two builds ------------------------------------------------------------------------------------------------------

    def plugin(self, name, *flags):
        nvcc = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
        built = os.path.join(os.path.dirname(os.path.dirname(ASSAY)), 'kernels')
        objects = glob.glob(built + '/mla_*.cu.o') + glob.glob(built + '/libassay_kernels.a.p/mla_*.c.o')
        if not os.path.exists(nvcc) or not objects:
            self.skipTest('no nvcc, or no objects of a build')
        out = os.path.join(self.dir, name)
        p = subprocess.run([nvcc, '-O3', '-std=c++17', '-arch=native', '-shared', '-Xcompiler', '-fPIC', '-Xlinker', '-Bsymbolic', *flags,
                            '-I' + os.path.join(HERE, '../../runner/include'), os.path.join(HERE, 'mla_plugin.cu'), *objects, '-lgomp', '-lm',
                            '-o', out], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return out

    def ab(self, base, head, *args, expect):
        suite = os.path.join(HERE, '../../suites/mla-decode.yaml')
        self.assay('ab', base, head, '--suite', suite, '--backend', 'cuda', '-o', 'ab.jsonl', '--force', *args, expect=expect)
        return self.cells('ab.jsonl')

    def test_two_builds(self):
        base = self.plugin('base.so')
        shutil.copy(base, os.path.join(self.dir, 'same.so'))
        cells = self.ab(base, os.path.join(self.dir, 'same.so'), '--filter', 'case=mla.split=4', expect=0)
        self.assertEqual(len(cells), 48)
        for c in cells:
            self.assertIn(c['status'], ('pass', 'inconclusive'), c['reason'])
            shas = {a['out_sha256'] for a in c['arms'] if a['role'] != 'null'}
            self.assertEqual(len(shas), 1)

    def test_two_builds_that_differ(self):
        cells = self.ab(self.plugin('base.so'), self.plugin('head.so', '-DPLANT'), '--filter', 'kernel=mla.absorb_q,kv=2048', expect=1)
        self.assertEqual(len(cells), 16)
        for c in cells:
            arm = c['case'].split('.', 1)[1]
            with self.subTest(c['id']):
                if arm == 'split=4':
                    self.assertEqual(c['status'], 'mismatch')
                    self.assertIn('1 of ', c['reason'])
                elif arm == 'split=2':  # twice its work
                    self.assertEqual(c['status'], 'regression', c['reason'])
                else:
                    self.assertIn(c['status'], ('pass', 'inconclusive'), c['reason'])

    # ---- the must-fail arms ----------------------------------------------------------------------------------------------

    def test_must_fail_arms(self):
        self.run_suite(os.path.join(HERE, '../../suites/selftest.yaml'), '--filter', 'case!=aa-*,case!=plant-*')
        caught = 0
        for c in self.cells():
            with self.subTest(c['id']):
                # Of an arm that only a host has, nothing but shipped runs of its cell.
                right = c['case'] in ('honest', 'in-place') or any(a['unsupported'] for a in c['arms'])
                self.assertEqual(c['status'], 'pass' if right else 'xfail', c['reason'])
                caught += not right
                for f in c['checks']:
                    self.assertTrue(f['status'] == 'pass' or f['arm'] not in ('shipped', 'split=4'), f)
        self.assertGreaterEqual(caught, 26)

    # ---- tools -----------------------------------------------------------------------------------------------------------

    def tool(self, *argv):
        if not shutil.which(argv[0]):
            self.skipTest('no %s here' % argv[0])
        p = subprocess.run([*argv], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=600)
        return p.returncode, p.stdout + p.stderr

    def sanitize(self, tool, suite, cells, clean, *options, args=()):
        status, text = self.tool('compute-sanitizer', '--target-processes', 'all', '--tool', tool, '--error-exitcode', '99', *options, ASSAY, 'run',
                                 suite, '--backend', 'cuda', '-o', 'out.jsonl', *args)
        self.assertEqual(status, 0, text[-4000:])
        ends = [line for line in text.splitlines() if 'SUMMARY' in line]
        self.assertTrue(ends, text[-4000:])
        for line in ends:
            self.assertIn(clean, line)
        self.assertEqual([c['status'] for c in self.cells()], ['pass'] * cells)

    def test_memcheck(self):
        self.sanitize('memcheck', 'sanitize.yaml', 18, '0 errors')

    def test_memcheck_of_every_kernel(self):
        self.sanitize('memcheck', 'race.yaml', 12, '0 errors')

    # The kernels under test alone: what the harness launches around each of them takes longer than they do.
    def racecheck(self, cells, *args, names):
        # A name that no kernel has would be free of hazards, whatever happens.
        source = ''
        for path in glob.glob(os.path.join(HERE, '../../kernels/*/*.cu*')):
            with open(path) as f:
                source += f.read()
        for name in names:
            self.assertTrue(re.search(r'__global__ void [^;{]*\b' + name, source), name)
        only = [x for name in names for x in ('--kernel-name', 'kernel_substring=' + name)]
        self.sanitize('racecheck', 'race.yaml', cells, '0 hazards', *only, args=args)
        # Nor one that this device did not run. (mmq_unpack derives an input, so it is no arm's.)
        artifacts = [a.get('artifact') or {} for c in self.cells() for a in c['arms']]
        ran = {one['symbol'] for artifact in artifacts for one in artifact.get('launches', [artifact]) if 'symbol' in one}
        hopper = any(one.get('sm') == 90 for artifact in artifacts for one in artifact.get('launches', [artifact]))
        for name in set(names) - {'mmq_unpack'} - (set() if hopper else {'mmq_ring', 'mmq_wgmma'}):
            self.assertTrue(any(name in symbol for symbol in ran), (name, ran))

    def test_racecheck(self):
        self.racecheck(12, names=('head_product', 'attn_', 'mmq_tile', 'mmq_ring', 'mmq_wgmma', 'mmq_unpack'))

    def test_debugger(self):
        _, text = self.tool('cuda-gdb', '-batch', '-ex', 'set cuda break_on_launch application', '-ex', 'run', '-ex', 'info cuda kernels', '-ex',
                            'bt', '-ex', 'kill', '--args', ASSAY, 'run', 'sanitize.yaml', '--backend', 'cuda', '--filter',
                            'kernel=mla.absorb_q,geometry=small,t_q=1', '--no-fork', '--arm', 'split=4', '--launches', '1', '-o', 'out.jsonl')
        self.assertIn('CUDA kernel', text)
        self.assertRegex(text, r'#0 .*<<<')

    def test_profiler(self):
        _, text = self.tool('ncu', '--clock-control', 'none', '-k', 'regex:head_product_sweep', ASSAY, 'run', 'sanitize.yaml', '--backend', 'cuda',
                            '--filter', 'kernel=mla.absorb_q,geometry=small,t_q=1', '--no-fork', '--arm', 'split=4', '--launches', '3', '-o', 'out.jsonl')
        if 'ERR_NVGPUCTRPERM' in text:
            self.skipTest('the counters are not open to this user')
        self.assertIn('head_product_sweep', text)


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    ASSAY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
