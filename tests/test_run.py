#!/usr/bin/env python3
"""test_run.py ASSAY SOURCE_ROOT: assay run and assay show from outside: files, exit statuses, signals, crashes, locks, shards.

No assertion depends on a time. Every verdict file that appears is held against the schema.
"""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ASSAY, ROOT = None, None

WORK = '''\
assay: 1
suite: work
geometries:
  none: {}
distributions:
  unit: {fill: uniform, range: [-1, 1]}
timing: {rounds: 8, scrub: none, warmup: {launches: 1}}
cases:
  - id: c
    kernels: [probe.work]
    geometry: none
    arms: {arms: [{more: 10}]}
    data: unit
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


class Run(unittest.TestCase):
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
        for _ in range(2000):
            try:
                if sum(r['kind'] == 'cell' for r in self.records(name, valid=False)) >= n:
                    return
            except (FileNotFoundError, ValueError):
                pass
            time.sleep(0.01)
        self.fail('no %d cells appeared in %s' % (n, name))

    # ---- output -------------------------------------------------------------------------------------------------

    def test_smoke_and_its_text_again(self):
        p = self.assay('run', os.path.join(ROOT, 'suites/smoke.yaml'), '-o', 'new/folder/s.jsonl', expect=0)
        records = self.records('new/folder/s.jsonl')
        self.assertEqual(records[0]['kind'], 'header')
        self.assertEqual(records[-1]['kind'], 'footer')
        cells = [r for r in records if r['kind'] == 'cell']
        self.assertEqual(records[0]['cells'], len(cells))
        self.assertEqual(records[-1]['counts']['pass'], len(cells))
        self.assertEqual(records[-1]['exit'], 0)
        lines = p.stdout.splitlines()
        self.assertTrue(lines[-1].startswith('PASS  smoke'), lines[-1])
        self.assertIn('exit 0', lines[-1])
        self.assertIn('-> new/folder/s.jsonl', lines[-1])
        for line in lines[:-1]:
            self.assertLessEqual(len(line), 100, line)
        self.assertLessEqual(len(lines), 45, 'a pass fits on one screen')
        # The text is a function of the records.
        again = self.assay('show', 'new/folder/s.jsonl', expect=0)
        # Where the records went is said by the run alone.
        self.assertTrue(p.stdout.endswith('  -> new/folder/s.jsonl\n'))
        self.assertEqual(again.stdout, p.stdout.replace('  -> new/folder/s.jsonl', ''))
        verbose = self.assay('show', '-v', 'new/folder/s.jsonl', expect=0)
        for c in cells:
            self.assertIn('== ' + c['id'].split('/', 1)[1], verbose.stdout)
        quiet = self.assay('show', '-q', 'new/folder/s.jsonl', expect=0)
        self.assertEqual(quiet.stdout.splitlines(), [again.stdout.splitlines()[-1]])

    def test_text_of_a_stored_file(self):
        """Errors, a time-out, regressions that were confirmed, an undecided cell with its price: word for word."""
        for name in ('show.jsonl', 'show.txt'):
            shutil.copy(os.path.join(ROOT, 'tests/data', name), self.dir)
        self.records('show.jsonl')
        self.assertEqual(self.assay('show', 'show.jsonl', expect=0).stdout, self.get('show.txt'))

    def test_default_name_and_refusal_to_overwrite(self):
        self.put('w.yaml', work_suite(100, 1))
        p = self.assay('run', 'w.yaml', expect=0)
        name = p.stdout.split('-> ')[-1].strip()
        self.assertRegex(name, r'^work-\d{8}T\d{6}\.jsonl$')
        before = self.get(name)
        p = self.assay('run', 'w.yaml', '-o', name, expect=2)
        self.assertIn('--force', p.stderr)
        self.assertIn('--resume', p.stderr)
        self.assertEqual(self.get(name), before)
        self.assay('run', 'w.yaml', '-o', name, '--force', expect=0)
        self.assertEqual(len(self.cells(name)), 1)

    def test_records_on_stdout_are_nothing_but_records(self):
        self.put('f.yaml', FAULTS)
        p = self.assay('run', 'f.yaml', '-o', '-', '--filter', 'case=noise', expect=0)
        kinds = [json.loads(line)['kind'] for line in p.stdout.splitlines()]
        self.assertEqual(kinds[0], 'header')
        self.assertEqual(kinds[-1], 'footer')
        self.assertIn('PASS', p.stderr)

    def test_colour_only_where_wanted(self):
        self.put('w.yaml', work_suite(100, 1))
        env = dict(self.env)
        del env['NO_COLOR']
        p = subprocess.run([ASSAY, 'run', 'w.yaml', '-o', 'x.jsonl'], cwd=self.dir, env=env, capture_output=True, text=True)
        self.assertNotIn('\033', p.stdout + p.stderr)

    def test_disk_full(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('no /dev/full')
        self.put('w.yaml', work_suite(100, 2))
        p = self.assay('run', 'w.yaml', '-o', '/dev/full', expect=3)
        self.assertIn('No space left', p.stderr)

    def test_reader_goes_away(self):
        self.put('w.yaml', work_suite(100, 40))
        p = subprocess.run(['sh', '-c', '"$0" run w.yaml -o - 2>err | head -n 1 >out; cat err', ASSAY], cwd=self.dir, env=self.env,
                           capture_output=True, text=True, timeout=60)
        self.assertIn('pipe', p.stdout)

    # ---- usage --------------------------------------------------------------------------------------------------

    def test_usage_errors(self):
        self.put('w.yaml', work_suite(100, 1))
        cases = [
            (['--lisst'], 'unknown option', 'did you mean list'),
            (['rnu'], 'unknown verb rnu', 'did you mean run'),
            (['run', 'w.yaml', '--resmue'], 'unknown option --resmue', 'did you mean --resume'),
            (['run', 'w.yaml', '-o'], '-o wants a value', 'hint'),
            (['run'], 'no suite', 'hint'),
            (['run', 'w.yaml', '--force=1'], '--force takes no value', 'hint'),
            (['run', 'w.yaml', '--processes', '1e3'], 'whole number', 'hint'),
            (['run', 'w.yaml', '--checks', 'identty'], 'unknown check', 'did you mean identity'),
            (['run', 'w.yaml', '--resume'], '--resume needs', 'hint'),
            (['run', 'w.yaml', '--shard', '0/4'], 'count from 1', 'hint'),
            (['run', 'w.yaml', '--shard', '5/4'], 'count from 1', 'hint'),
            (['run', 'w.yaml', '--backend', 'cdua'], 'no such backend', 'hint'),
            (['run', 'w.yaml', '--arm', 'x'], '--no-fork', 'hint'),
            (['run', 'w.yaml', 'w.yaml', '-o', 'x.jsonl'], 'several suites', 'hint'),
        ]
        for args, error, hint in cases:
            p = self.assay(*args, expect=2)
            self.assertEqual(p.stdout, '', args)
            lines = p.stderr.splitlines()
            self.assertEqual(len(lines), 2, (args, p.stderr))
            self.assertIn(error, lines[0])
            self.assertIn(hint, lines[1])
        self.assertEqual(sorted(os.listdir(self.dir)), ['w.yaml'])

    def test_nothing_runs_while_anything_is_wrong(self):
        self.put('good.yaml', work_suite(100, 1))
        self.put('bad.yaml', work_suite(100, 1).replace('probe.work', 'probe.wrok'))
        p = self.assay('run', 'good.yaml', 'bad.yaml', expect=2)
        self.assertIn('bad.yaml:', p.stderr)
        self.assertEqual(sorted(os.listdir(self.dir)), ['bad.yaml', 'good.yaml'])
        self.assay('run', 'good.yaml', '--filter', 'steps=7', expect=2)
        self.assay('run', 'missing.yaml', expect=2)
        self.assay('run', 'good.yaml', '--set', 'timing.ruonds=9', expect=2)

    def test_help_and_version(self):
        self.assertIn('backends: ', self.assay('--version', expect=0).stdout)
        p = self.assay('--help', expect=0)
        for verb in ('run', 'show'):
            self.assertIn('\n  %s ' % verb, p.stdout)
            self.assertIn('usage: assay %s' % verb, self.assay(verb, '--help', expect=0).stdout)

    # ---- ends of a run ------------------------------------------------------------------------------------------

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

    def test_killed_in_mid_run_and_resumed(self):
        self.put('w.yaml', work_suite(200000, 30))
        p = self.start('run', 'w.yaml', '-o', 'k.jsonl')
        self.wait_for_cells('k.jsonl', 3)
        p.kill()
        p.wait()
        before = self.cells('k.jsonl', valid=False)
        self.assertLess(len(before), 30)
        shown = self.assay('show', 'k.jsonl', expect=3)
        self.assertIn('CUT SHORT', shown.stdout)
        with open(os.path.join(self.dir, 'k.jsonl'), 'a') as f:
            f.write('{"kind":"cell","id":"work/c/pro')  # as a torn write leaves it
        self.assertIn('cut short', self.assay('show', 'k.jsonl', expect=3).stderr)
        self.assay('run', 'w.yaml', '-o', 'k.jsonl', '--resume', expect=0)
        records = self.check_complete('k.jsonl', 30)
        self.assertEqual(sum(r['kind'] == 'resume' for r in records), 1)
        # What was done was not done again.
        for c in before:
            self.assertEqual(sum(r['kind'] == 'cell' and r['id'] == c['id'] for r in records), 1)
        # Nothing left: a resume adds nothing but itself.
        self.assay('run', 'w.yaml', '-o', 'k.jsonl', '--resume', expect=0)
        self.assertEqual(len(self.check_complete('k.jsonl', 30)), len(records) + 1)

    def test_resume_without_a_file_is_a_new_run(self):
        self.put('w.yaml', work_suite(100, 2))
        self.assay('run', 'w.yaml', '-o', 'r.jsonl', '--resume', expect=0)
        self.check_complete('r.jsonl', 2)

    def test_resume_refuses_another_run(self):
        self.put('w.yaml', work_suite(100, 2))
        self.assay('run', 'w.yaml', '-o', 'r.jsonl', expect=0)
        before = self.get('r.jsonl')
        self.assertIn('settings', self.assay('run', 'w.yaml', '-o', 'r.jsonl', '--resume', '--set', 'timing.rounds=9', expect=2).stderr)
        other = os.path.join(self.dir, 'assay-other')
        shutil.copy(ASSAY, other)
        with open(other, 'ab') as f:
            f.write(b'\0')
        self.assertIn('binary', self.assay('run', 'w.yaml', '-o', 'r.jsonl', '--resume', binary=other, expect=2).stderr)
        # Half of a file under other checks, or of other cells, is no half of this run.
        for more, word in ((['--filter', 'steps=100'], 'choice of cells'), (['--checks', 'identity'], 'other checks')):
            self.assertIn(word, self.assay('run', 'w.yaml', '-o', 'r.jsonl', '--resume', *more, expect=2).stderr)
        self.put('w.yaml', work_suite(100, 3))
        self.assertIn('plan', self.assay('run', 'w.yaml', '-o', 'r.jsonl', '--resume', expect=2).stderr)
        self.assertEqual(self.get('r.jsonl'), before)

    def rewrite(self, name, change):
        """The file without what stands after its cells, each cell changed."""
        records = [r for r in self.records(name) if r['kind'] in ('header', 'cell')]
        for i, c in enumerate(r for r in records if r['kind'] == 'cell'):
            change(i, c)
        self.put(name, ''.join(json.dumps(r, separators=(',', ':')) + '\n' for r in records))

    def test_what_a_resume_does_again(self):
        """Error, time-out and undecided cells; no other status."""
        statuses = ['error', 'timeout', 'inconclusive', 'pass', 'mismatch', 'wrong', 'regression', 'invalid', 'skip', 'xfail', 'xpass']
        self.put('w.yaml', work_suite(100, len(statuses)))
        self.assay('run', 'w.yaml', '-o', 'r.jsonl', expect=0)

        def spoil(i, c):
            c['status'], c['reason'] = statuses[i], 'by hand'
        self.rewrite('r.jsonl', spoil)
        self.assay('run', 'w.yaml', '-o', 'r.jsonl', '--resume', expect=1)
        cells = self.cells('r.jsonl')
        for i, status in enumerate(statuses):
            lines = [c for c in cells if c['plan_index'] == i]
            again = status in ('error', 'timeout', 'inconclusive')
            self.assertEqual([c['reason'] for c in lines], ['by hand', None] if again else ['by hand'], status)
            self.assertEqual(lines[-1]['status'], 'pass' if again else status)
        footer = self.records('r.jsonl')[-1]
        self.assertEqual(sum(footer['counts'].values()), len(statuses))
        self.assertEqual(footer['counts']['timeout'], 0)

    def test_a_resumed_cell_gets_the_whole_rest_of_the_budget(self):
        """The suite's budget is shared by the cells that are still to be done, not by those that the file has."""
        self.put('w.yaml', work_suite(100, 20).replace('rounds: 8,', 'rounds: 8, budget: {suite: 1000s},'))
        self.assay('run', 'w.yaml', '-o', 'b.jsonl', expect=0)
        first = self.cells('b.jsonl')[0]
        self.assertLessEqual(first['measure']['budget_ns'], 50 * 10**9)

        def spoil(i, c):
            c['status'], c['reason'] = ('pass', None) if i else ('error', 'by hand')
        self.rewrite('b.jsonl', spoil)
        self.assay('run', 'w.yaml', '-o', 'b.jsonl', '--resume', expect=0)
        again = self.cells('b.jsonl')[-1]
        self.assertEqual(again['id'], first['id'])
        self.assertGreater(again['measure']['budget_ns'], 500 * 10**9)

    def test_the_file_of_rerun_failed_is_not_replaced(self):
        """--force replaces a result, never the one that says what to do: the cells that passed would be lost."""
        self.put('w.yaml', work_suite(100, 3))
        self.assay('run', 'w.yaml', '-o', 'out/work.jsonl', expect=0)

        def spoil(i, c):
            c['status'], c['reason'] = ('pass', None) if i else ('error', 'by hand')
        self.rewrite('out/work.jsonl', spoil)
        before = self.get('out/work.jsonl')
        for out in ('out/work.jsonl', 'out/'):
            for how in ('--force', '--resume'):
                p = self.assay('run', 'w.yaml', '--rerun-failed', 'out/work.jsonl', '-o', out, how, expect=2)
                self.assertIn('out/work.jsonl', p.stderr)
        self.assertEqual(self.get('out/work.jsonl'), before)
        self.assay('run', 'w.yaml', '--rerun-failed', 'out/work.jsonl', '-o', 'again.jsonl', expect=0)
        self.assertEqual(len(self.cells('again.jsonl')), 1)

    def test_a_run_is_noisy_without_a_suspect(self):
        """Cells whose null arm is off make a noisy run though none of them waits for a second look."""
        self.put('w.yaml', work_suite(100, 12))
        self.assay('run', 'w.yaml', '-o', 'n.jsonl', expect=0)
        for biased, noisy in ((1, False), (12, True)):
            def spoil(i, c):
                c['timing']['null']['biased'] = i < biased
            self.rewrite('n.jsonl', spoil)
            p = self.assay('run', 'w.yaml', '-o', 'n.jsonl', '--resume', expect=0)
            footer = self.records('n.jsonl')[-1]
            self.assertEqual((footer['biased'], footer['noisy']), (biased, noisy))
            self.assertEqual('the run is NOISY' in ' '.join(p.stdout.split()), noisy)

    def test_signals(self):
        for sig, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            name = 'i%d.jsonl' % status
            self.put('w.yaml', work_suite(200000, 30))
            p = self.start('run', 'w.yaml', '-o', name)
            self.wait_for_cells(name, 2)
            p.send_signal(sig)
            self.assertEqual(p.wait(), status)
            records = self.records(name)
            self.assertEqual(records[-1]['kind'], 'footer')
            self.assertEqual(records[-1]['exit'], status)
            done = sum(r['kind'] == 'cell' for r in records)
            self.assertEqual(records[-1]['not_run'], 30 - done)
            self.assertIn('INTERRUPTED', self.assay('show', name).stdout)
        self.assay('run', 'w.yaml', '-o', name, '--resume', expect=0)
        self.check_complete(name, 30)

    def test_a_terminal_that_goes(self):
        """The whole group gets the signal; under nohup nobody minds."""
        self.put('w.yaml', work_suite(200000, 12))
        for nohup in (False, True):
            name = 'h%d.jsonl' % nohup
            p = subprocess.Popen([ASSAY, 'run', 'w.yaml', '-o', name], cwd=self.dir, env=self.env, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True,
                                 preexec_fn=(lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) if nohup else None)
            self.wait_for_cells(name, 2)
            os.killpg(p.pid, signal.SIGHUP)
            self.assertEqual(p.wait(), 0 if nohup else 129)
            records = self.records(name)
            self.assertEqual(records[-1]['exit'], 0 if nohup else 129)
            # The worker leaves signals to the supervisor: no cell is lost to one.
            self.assertEqual({r['status'] for r in records if r['kind'] == 'cell'}, {'pass'})
        self.check_complete('h1.jsonl', 12)

    def test_the_banner_says_what_this_run_does(self):
        smoke = os.path.join(ROOT, 'suites/smoke.yaml')
        p = self.assay('run', smoke, '-o', 'b.jsonl', '--filter', 'kernel=mla.absorb_q,t_q=4', '--checks', 'identity', expect=0)
        header = self.records('b.jsonl')[0]
        case = header['cases'][0]
        self.assertEqual((header['cells'], header['plan_cells'], header['filter']), (2, 16, ['kernel=mla.absorb_q,t_q=4']))
        self.assertEqual((case['kernels'], case['axes'], case['checks']), (['mla.absorb_q'], {'kv': [48, 256], 't_q': [4]}, ['identity']))
        self.assertEqual((list(case['geometries']), case['arms']), (['tiny'], ['shipped', 'split=2', 'split=4']))
        self.assertIn('smoke  2 of 16 cells', p.stdout)
        self.assertIn('arms shipped, split=2,4; checks identity geometry', ' '.join(p.stdout.split()))
        self.assertNotIn('timing   ', p.stdout)
        # A shard with no cell says so, and loses no worker over it.
        self.put('w.yaml', work_suite(100, 2))
        p = self.assay('run', 'w.yaml', '-o', 'e.jsonl', '--shard', '3/3', expect=0)
        self.assertIn('work  0 of 2 cells', p.stdout)
        self.assertIn('nothing to do: no cell is in this part of the plan', p.stdout)
        self.assertNotIn('no worker', p.stdout)
        self.assertTrue(p.stdout.splitlines()[-1].startswith('NOTHING RUN'), p.stdout)
        # The shards together do what the whole does.
        for i in (1, 2, 3):
            self.assay('run', 'w.yaml', '-o', 'm%d.jsonl' % i, '--shard', '%d/3' % i, expect=0)
        self.assay('merge', 'm1.jsonl', 'm2.jsonl', 'm3.jsonl', '-o', 'm.jsonl', expect=0)
        self.assay('run', 'w.yaml', '-o', 'w.jsonl', expect=0)
        for key in ('cases', 'serving', 'rigs', 'cells', 'plan_cells'):
            self.assertEqual(self.records('m.jsonl')[0][key], self.records('w.jsonl')[0][key], key)

    def test_a_plan_for_a_device_elsewhere(self):
        nobody = {'CUDA_VISIBLE_DEVICES': ''}
        suite, cell = os.path.join(ROOT, 'suites/mla-decode.yaml'), 'mla-decode/mla/mla.absorb_q/glm5-next/unit/kv=2048,t_q=1'
        p = self.assay('list', suite, '--backend', 'cuda', env=nobody, expect=2)
        if 'in this build' in p.stderr:
            self.skipTest(p.stderr.strip())
        for wanted in ((), ('--device', '0')):
            p = self.assay('list', suite, '--backend', 'cuda', *wanted, env=nobody, expect=2)
            self.assertIn("name it: --device 'NVIDIA H200'", p.stderr)
        p = self.assay('list', suite, '--backend', 'cuda', '--device', 'NVIDIA H200', env=nobody, expect=0)
        self.assertIn('48 cells   cuda NVIDIA H200, which is not here', p.stdout)
        p = self.assay('explain', suite, cell, '--backend', 'cuda', '--device', 'NVIDIA H200', env=nobody, expect=0)
        self.assertIn('which is not here', p.stdout)
        self.assertIn('tables/mla-h200.yaml', p.stdout)
        p = self.assay('explain', suite, cell, '--backend', 'cuda', '--device', 'NVIDIA B200', env=nobody, expect=0)
        self.assertIn('tables/mla-default.yaml', p.stdout)
        for verb in ('run', 'selftest'):
            args = (suite,) if verb == 'run' else ()
            p = self.assay(verb, *args, '--backend', 'cuda', '--device', 'NVIDIA H200', env=nobody, expect=2)

    def test_a_waiver_is_unneeded_only_where_all_its_cells_passed(self):
        waived = ('waivers:\n'
                  '  - {id: every-cell, match: {kernel: probe.work}, expect: mismatch, reason: none of them fails}\n'
                  '  - {id: no-cell, match: {kernel: probe.work, steps: 1}, expect: mismatch, reason: matches nothing}\n'
                  '  - {id: no-gpu, match: {backend: cuda}, expect: mismatch, reason: elsewhere}\n')

        def lines(text):
            return [line.split()[1:] for line in text.splitlines() if line.startswith('waiver')]

        none = 'no-cell matches no cell: remove it'.split()
        unneeded = 'every-cell was not needed in this run'.split()
        self.put('w.yaml', work_suite(200000, 30) + waived)
        p = self.start('run', 'w.yaml', '-o', 'i.jsonl')
        self.wait_for_cells('i.jsonl', 2)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 143)
        self.assertEqual(lines(self.assay('show', 'i.jsonl').stdout), [none])
        self.put('w.yaml', work_suite(100, 3) + waived)
        p = self.assay('run', 'w.yaml', '-o', 'f.jsonl', '--filter', 'steps=100', expect=1)
        self.assertEqual(lines(p.stdout), [none])
        p = self.assay('run', 'w.yaml', '-o', 'a.jsonl', expect=1)
        self.assertEqual(lines(p.stdout), [unneeded, none])
        self.assertEqual({c['status'] for c in self.cells('a.jsonl')}, {'xpass'})
        for i in ('1/2', '2/2'):
            self.assay('run', 'w.yaml', '-o', 's%s.jsonl' % i[0], '--shard', i, expect=1)
            self.assertEqual(lines(self.assay('show', 's%s.jsonl' % i[0]).stdout), [none])
        self.assay('merge', 's1.jsonl', 's2.jsonl', '-o', 'm.jsonl', expect=0)
        self.assertEqual(lines(self.assay('show', 'm.jsonl').stdout), [unneeded, none])

    def test_a_ratio_of_a_part_is_not_believed(self):
        ratio = 'checks: {ratio: {of: more=10, over: shipped, aggregates: [geomean], bar: {at_least: -50pp}}}'

        def suite(steps, cells):
            text = work_suite(steps, cells)
            start = text.index('checks: {identity')
            return text[:start] + ratio + text[text.index('\n', start):]

        self.put('w.yaml', suite(200000, 30))
        p = self.start('run', 'w.yaml', '-o', 'i.jsonl')
        self.wait_for_cells('i.jsonl', 2)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(), 130)
        found = [r for r in self.records('i.jsonl') if r['kind'] == 'aggregate' and r.get('check') == 'ratio']
        self.assertTrue(found)
        for r in found:
            self.assertEqual(r['verdict'], 'invalid')
            self.assertTrue(r['reason'].startswith('incomplete: '), r['reason'])
        self.put('w.yaml', suite(1000, 3))
        self.assay('run', 'w.yaml', '-o', 'a.jsonl')
        for r in self.records('a.jsonl'):
            self.assertNotIn('incomplete', str(r.get('reason')))

    def test_a_crash_costs_one_cell(self):
        self.put('f.yaml', FAULTS)
        p = self.assay('run', 'f.yaml', '-o', 'f.jsonl', expect=1)
        status = {c['case']: c['status'] for c in self.cells('f.jsonl')}
        self.assertEqual(status['before'], 'pass')
        self.assertEqual(status['crash'], 'error')
        self.assertEqual(status['exits'], 'error')
        self.assertEqual(status['flip'], 'mismatch')
        self.assertEqual(status['after'], 'pass')
        reason = {c['case']: c['reason'] for c in self.cells('f.jsonl')}['crash']
        self.assertRegex(reason, 'SIGSEGV|exited with status')  # a sanitizer turns the one into the other
        self.assertIn('in arm crash', reason)
        self.assertIn('MISMATCH', p.stdout)
        self.assertTrue(p.stdout.splitlines()[-1].startswith('FAIL  faults'))
        # Status 3 without the failed gate; 0 with --advisory, which says so.
        self.assay('run', 'f.yaml', '-o', 'g.jsonl', '--filter', 'case=crash|after', expect=3)
        p = self.assay('run', 'f.yaml', '-o', 'h.jsonl', '--advisory', expect=0)
        self.assertIn('would have been 1', p.stderr)
        # Only what failed is run again.
        self.assay('run', 'f.yaml', '-o', 'again.jsonl', '--rerun-failed', 'f.jsonl', expect=1)
        self.assertEqual({c['case'] for c in self.cells('again.jsonl')},
                         {case for case, s in status.items() if s != 'pass'})
        self.assay('run', 'f.yaml', '-o', 'only.jsonl', '--filter', 'case=after', expect=0)
        p = self.assay('run', 'f.yaml', '-o', 'none.jsonl', '--rerun-failed', 'only.jsonl', expect=0)
        self.assertIn('nothing to rerun', p.stderr)
        self.assay('run', 'f.yaml', '--rerun-failed', 'only.jsonl', '--require-run', expect=4)

    def test_rerun_command_of_a_record(self):
        self.put('f.yaml', FAULTS)
        self.assay('run', 'f.yaml', '-o', 'f.jsonl', '--filter', 'case=flip', expect=1)
        rerun = self.cells('f.jsonl')[0]['rerun']
        self.assertTrue(rerun.startswith('assay run '))
        p = subprocess.run(['sh', '-c', '"$0" ' + rerun[len('assay '):] + ' -o again.jsonl', ASSAY], cwd=self.dir, env=self.env,
                           capture_output=True, text=True)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertEqual([c['id'] for c in self.cells('again.jsonl')], [c['id'] for c in self.cells('f.jsonl')])

    def test_rerun_command_has_the_settings_of_its_run(self):
        self.put('w.yaml', work_suite(100, 2))
        self.assay('run', 'w.yaml', '-o', 'a.jsonl', '--set', 'steps=77', '--set', "timing.max_rounds=8", expect=0)
        rerun = self.cells('a.jsonl')[0]['rerun']
        p = subprocess.run(['sh', '-c', '"$0" ' + rerun[len('assay '):] + ' -o b.jsonl', ASSAY], cwd=self.dir, env=self.env,
                           capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.cells('b.jsonl')[0]['id'], self.cells('a.jsonl')[0]['id'])

    # ---- parts, processes, locks --------------------------------------------------------------------------------

    def test_shards_are_the_whole(self):
        self.put('w.yaml', work_suite(100, 7))
        self.assay('run', 'w.yaml', '-o', 'all.jsonl', expect=0)
        ids = []
        for i in (1, 2, 3):
            name = 's%d.jsonl' % i
            self.assay('run', 'w.yaml', '-o', name, '--shard', '%d/3' % i, expect=0)
            records = self.records(name)
            self.assertEqual(records[0]['shard'], {'i': i, 'n': 3})
            self.assertEqual(records[0]['plan_hash'], self.records('all.jsonl')[0]['plan_hash'])
            ids += [r['id'] for r in records if r['kind'] == 'cell']
        self.assertEqual(sorted(ids), sorted(c['id'] for c in self.cells('all.jsonl')))

    def test_shard_auto(self):
        self.put('w.yaml', work_suite(100, 4))
        n = 0

        def auto(env, expect, want=None):
            nonlocal n
            n += 1
            name = 'a%d.jsonl' % n
            p = self.assay('run', 'w.yaml', '-o', name, '--shard', 'auto', env=env, expect=expect)
            if expect == 0:
                self.assertEqual(self.records(name)[0]['shard'], want)
                self.assertIn('shard', p.stderr.splitlines()[0])
            return p.stderr

        auto({}, 0, None)
        auto({'ASSAY_SHARD': '2/4'}, 0, {'i': 2, 'n': 4})
        auto({'GTEST_TOTAL_SHARDS': '2', 'GTEST_SHARD_INDEX': '0'}, 0, {'i': 1, 'n': 2})
        auto({'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2'}, 0, {'i': 2, 'n': 2})
        # A batch script has these and runs once.
        auto({'SLURM_PROCID': '0', 'SLURM_NTASKS': '4', 'SLURM_JOB_ID': '7'}, 0, None)
        auto({'SLURM_PROCID': '3', 'SLURM_STEP_NUM_TASKS': '4', 'SLURM_STEP_ID': '0'}, 0, {'i': 4, 'n': 4})
        array = {'SLURM_ARRAY_TASK_ID': '14', 'SLURM_ARRAY_TASK_MIN': '10', 'SLURM_ARRAY_TASK_MAX': '16', 'SLURM_ARRAY_TASK_STEP': '2'}
        auto(array, 0, {'i': 3, 'n': 4})
        auto(dict(array, SLURM_ARRAY_TASK_ID='12', SLURM_ARRAY_TASK_MAX='12', SLURM_PROCID='0', SLURM_STEP_NUM_TASKS='2',
                  SLURM_STEP_ID='0'), 0, {'i': 3, 'n': 4})
        auto({'PMI_RANK': '0', 'PMI_SIZE': '1'}, 0, None)
        auto({'JOB_COMPLETION_INDEX': '1', 'ASSAY_SHARD_TOTAL': '2'}, 0, {'i': 2, 'n': 2})
        self.assertIn('ASSAY_SHARD_TOTAL', auto({'JOB_COMPLETION_INDEX': '1'}, 2))
        self.assertIn('not a number', auto({'GTEST_TOTAL_SHARDS': 'two', 'GTEST_SHARD_INDEX': '0'}, 2))
        self.assertIn('count from 1', auto({'GTEST_TOTAL_SHARDS': '2', 'GTEST_SHARD_INDEX': '2'}, 2))
        self.assertIn('disagree', auto({'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2', 'PMI_RANK': '0', 'PMI_SIZE': '2'}, 2))
        self.assertIn('none of', auto(dict(array, SLURM_ARRAY_TASK_ID='13'), 2))

    def test_processes(self):
        self.put('w.yaml', work_suite(100, 2))
        self.assay('run', 'w.yaml', '-o', 'p.jsonl', '--processes', '3', expect=0)
        records = self.records('p.jsonl')
        self.assertEqual(sum(r['kind'] == 'screen' for r in records), 2)
        for c in self.cells('p.jsonl'):
            self.assertEqual([r['process'] for r in c['repeats']], [1, 2])
            for r in c['repeats']:
                self.assertEqual([len(a['samples_ns']) for a in r['arms']], [8] * len(c['arms']))
            # Another process, another order.
            self.assertEqual(len({c['measure']['order_seed'], *(r['order_seed'] for r in c['repeats'])}), 3)
        # A ratio check is timed again too; a cell of which nothing came back is not.
        self.put('r.yaml', work_suite(100, 1).replace('regression: {select: shipped, against: shipped}', 'ratio: {of: more=10, over: shipped}'))
        self.assay('run', 'r.yaml', '-o', 'r.jsonl', '--processes', '2')
        (c,) = self.cells('r.jsonl')
        self.assertEqual([len(a['samples_ns']) for a in c['repeats'][0]['arms']], [8] * len(c['arms']))
        self.put('f.yaml', FAULTS)
        self.assay('run', 'f.yaml', '-o', 'f.jsonl', '--processes', '2', '--filter', 'case=crash', expect=3)
        (c,) = self.cells('f.jsonl')
        self.assertEqual((c['status'], c['repeats']), ('error', None))
        self.assertFalse([n for n in c['notes'] if 'not repeated' in n])

    def test_a_suspect_is_seen_by_a_second_process(self):
        """An arm eleven times as slow, margin 100 %: no noise of a machine hides that (a null arm would, where every second launch is disturbed). Who confirms has not measured before, in an order of its own,
        over 32 rounds, and nobody else is asked again."""
        self.put('s.yaml', work_suite(20000, 2).replace('more: 10', 'more: 10000').replace('select: shipped', 'select: more=10000')
                 .replace('timing: {rounds: 8', 'timing: {null_arm: false').replace('timing: diagnostic', 'timing: gate')
                 + 'margins:\n  - {match: {}, fail: 100%}\n  - {match: {steps: 20010}, fail: 10000%}\n')
        self.assay('run', 's.yaml', '-o', 'a.jsonl', expect=1)
        slow, wide = sorted(self.cells('a.jsonl'), key=lambda c: c['plan_index'])  # one that waits is written last
        screens = [r for r in self.records('a.jsonl') if r['kind'] == 'screen']
        self.assertEqual([s['id'] for s in screens], [slow['id']])
        self.assertEqual((slow['status'], slow['timing']['verdict']), ('regression', 'regression'))
        self.assertEqual((wide['status'], wide['timing']['verdict'], wide['confirm']), ('pass', 'pass', None))
        c = slow['confirm']
        self.assertNotEqual(c['process'], slow['measure']['process'])
        self.assertNotEqual(c['order_seed'], slow['measure']['order_seed'])
        n = min(64, max(32, 2 * slow['timing']['n']))
        self.assertEqual((c['n'], [len(a['samples_ns']) for a in c['arms']]), (n, [n] * len(c['arms'])))
        self.assertTrue({'shipped', 'more=10000'} <= {a['name'] for a in c['arms']})
        self.assertTrue(c['confirmed'] and c['p'] < 0.05 and c['estimate'] > slow['timing']['ln_margin'])
        # Both are suspects: each its own order, the same in the next run, and one process looks at both.
        both = ['--set', 'steps=20000,20020']
        self.assay('run', 's.yaml', '-o', 'b.jsonl', *both, expect=1)
        one, two = (c['confirm'] for c in sorted(self.cells('b.jsonl'), key=lambda c: c['plan_index']))
        self.assertEqual(one['order_seed'], c['order_seed'])
        self.assertNotEqual(one['order_seed'], two['order_seed'])
        self.assertEqual(one['process'], two['process'])
        # Where the suite asks for no second look, there is none.
        self.assay('run', 's.yaml', '-o', 'n.jsonl', '--set', 'timing.confirm=none', expect=1)
        slow, _ = sorted(self.cells('n.jsonl'), key=lambda c: c['plan_index'])
        self.assertEqual((slow['confirm'], slow['timing']['verdict']), (None, 'regression'))

    def test_what_processes_differ_by_is_kept(self):
        """The pairs of a run with several processes go into the store; the next header has tau from there once there are 16."""
        self.put('w.yaml', work_suite(100, 8))
        self.assay('run', 'w.yaml', '-o', 'a.jsonl', '--processes', '3', expect=0)
        a = self.records('a.jsonl')
        self.assertEqual((a[0]['tau'], a[0]['tau_source'], a[0]['tau_n']), (0.0025, 'built-in', 0))
        own = [r for r in a if r['kind'] == 'aggregate' and r['name'] == 'processes']
        self.assertEqual([r['n'] for r in own], [16])
        self.assay('run', 'w.yaml', '-o', 'b.jsonl', expect=0)
        b = self.records('b.jsonl')[0]
        self.assertEqual((b['tau_source'], b['tau_n']), ('store ' + self.env['ASSAY_TAU_STORE'], 16))
        self.assertAlmostEqual(b['tau'], own[0]['tau'], places=15)
        # Another file, and a file that is no store: said so, and not used.
        self.assay('run', 'w.yaml', '-o', 'c.jsonl', '--tau-store', 'none.json', expect=0)
        self.assertEqual(self.records('c.jsonl')[0]['tau_source'], 'built-in')
        self.put('bad.json', '[]')
        p = self.assay('run', 'w.yaml', '-o', 'd.jsonl', '--tau-store', 'bad.json', expect=0)
        self.assertIn('bad.json is no tau store', p.stderr)
        self.assertEqual(self.get('bad.json'), '[]')

    def test_sentinels_at_both_ends(self):
        self.put('w.yaml', work_suite(100, 1))
        self.assay('run', 'w.yaml', '-o', 'a.jsonl', expect=0)
        records = self.records('a.jsonl')
        s = [r for r in records if r['kind'] == 'aggregate' and r['name'] == 'sentinels'][0]
        self.assertEqual(s['samples'], records[0]['calibration']['sentinels'])
        self.assertEqual(sorted(s['end']), sorted(s['samples']))
        self.assertEqual(sorted(s['drift']), sorted(s['samples']))
        self.assertNotEqual(s['end'], s['samples'])
        cost = [r for r in records if r['kind'] == 'cell'][0]['cost']
        self.assertGreater(cost['wall_ns'], cost['launch_ns'] + cost['scrub_ns'] + cost['reference_ns'])

    def test_selftest(self):
        """Every must-fail subject is caught; the record is one like any other, and its text and verdicts can be had again."""
        p = self.assay('selftest', '--quick', '--backend', 'host', '-o', 's.jsonl', expect=0)
        records = self.records('s.jsonl')
        claims = {r['claim']: r for r in records if r['kind'] == 'aggregate' and r['name'] == 'selftest'}
        subjects = [c for c in claims if c.startswith('must-fail ')]
        self.assertGreaterEqual(len(subjects), 26)
        self.assertEqual([c for c in subjects if claims[c]['holds'] is False], [])
        self.assertGreaterEqual(sum(claims[c]['holds'] is True for c in subjects), 26)
        # By the check that is there for it.
        for name, check in (('ulp', 'identity'), ('racy', 'repeat'), ('batch', 'invariant'), ('nan', 'reference'), ('overrun', 'memory'),
                            ('hang', 'run')):
            self.assertIn(' by %s: ' % check, claims['must-fail ' + name]['text'])
        batch = [r for r in records if r['kind'] == 'cell' and r['case'] == 'batch'][0]
        self.assertEqual([f['status'] for f in batch['checks'] if f['check'] == 'repeat' and f['arm'] == 'batch'], ['pass'])
        # Quick: of timings nothing is claimed.
        self.assertEqual([c for c in claims if c.startswith(('A/A', 'planted', 'overhead', 'scrub')) and claims[c]['holds'] is not None], [])
        self.assertIn('PASS  selftest', p.stdout)
        self.assertEqual(records[-1]['exit'], 0)
        self.assay('rejudge', 's.jsonl', '-o', 'r.jsonl', expect=0)
        self.assertEqual(self.get('s.jsonl'), self.get('r.jsonl'))
        self.assertFalse(os.path.exists(self.env['ASSAY_TAU_STORE']))

    def test_one_run_a_device(self):
        self.put('w.yaml', work_suite(100, 1))
        self.assay('run', 'w.yaml', '-o', 'a.jsonl', expect=0)
        lock = self.records('a.jsonl')[0]['lock']
        self.assertEqual(os.path.dirname(lock), self.dir)
        with open(lock, 'r+') as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            f.write('pid 1, somebody, suite other, since 2026-01-01T00:00:00Z\n')
            f.flush()
            p = self.assay('run', 'w.yaml', '-o', 'b.jsonl', '--no-wait', expect=2)
            self.assertIn('somebody', p.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.dir, 'b.jsonl')))
            waiting = subprocess.Popen([ASSAY, 'run', 'w.yaml', '-o', 'c.jsonl'], cwd=self.dir, env=self.env,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            line = waiting.stderr.readline()
            self.assertIn('waiting for', line)
            self.assertIn('somebody', line)
        out, err = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0, err)

    def test_no_fork(self):
        self.put('f.yaml', FAULTS)
        p = self.assay('run', 'f.yaml', '--no-fork', '--filter', 'case=after', '-o', 'n.jsonl', expect=0)
        self.assertIn('BIT-IDENTICAL', p.stdout)
        self.assertEqual(self.cells('n.jsonl')[0]['status'], 'pass')
        self.assay('run', 'f.yaml', '--no-fork', '--filter', 'case=after', '--arm', 'split=4', '--launches', '3', expect=0)
        self.assertIn('leaves 6', self.assay('run', 'f.yaml', '--no-fork', expect=2).stderr)
        # The kernel's crash is this process's crash: that is what it is for.
        p = self.assay('run', 'f.yaml', '--no-fork', '--filter', 'case=crash', '--arm', 'crash')
        self.assertNotIn(p.returncode, (0, 2))

    def test_several_suites_into_a_folder(self):
        self.put('w.yaml', work_suite(100, 1))
        self.put('f.yaml', FAULTS)
        self.assay('run', 'w.yaml', 'f.yaml', '-o', 'out/', expect=1)
        self.assertEqual(sorted(os.listdir(os.path.join(self.dir, 'out'))), ['faults.jsonl', 'work.jsonl'])


if __name__ == '__main__':
    ASSAY, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
