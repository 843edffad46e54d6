#!/usr/bin/env python3
"""test_run_parts.py ASSAY SOURCE_ROOT: shards, processes, locks, several suites. No assertion depends on a time."""
import csv
import fcntl
import os
import subprocess

from run_base import ASSAY, FAULTS, RunBase, main, work_suite


class RunParts(RunBase):
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
            self.assertIn('--no-wait', line)
            self.assertIn('somebody', line)
        out, err = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0, err)

    def test_a_skip_has_a_reason_and_no_time(self):
        """No number of a time in the record, in whatever shape a reader of JSON or CSV meets it."""
        repeats = '  - {id: d, kernels: [probe.work], geometry: none, arms: {arms: [{more: 10}]}, data: unit, axes: {steps: [100]}, ' \
                  'checks: {repeat: {launches: 2}}}\n'
        self.put('w.yaml', work_suite(100, 2).replace('rigs:', repeats + 'rigs:'))
        self.assay('run', 'w.yaml', '-o', 's.jsonl', '--checks', 'repeat', expect=0)
        cells = self.cells('s.jsonl')
        self.assertEqual([c['status'] for c in cells], ['skip', 'skip', 'pass'])
        for c in cells[:2]:
            self.assertIn('none of the checks', c['reason'])
            for key in ('timing', 'work', 'measure', 'cost', 'confirm'):
                self.assertIsNone(c[key], key)
            for arm in c['arms']:
                self.assertEqual([arm['summary'], arm['samples_ns'], arm['out_sha256']], [None] * 3)
        self.assay('report', 's.jsonl', '-o', 's.csv', expect=0)
        with open(os.path.join(self.dir, 's.csv'), newline='') as f:
            rows = [r for r in csv.DictReader(f) if r['status'] == 'skip']
        self.assertEqual(len(rows), 4)
        numbers = ('n', 'ratio', 'ratio_lo', 'ratio_hi', 'se_ln', 'gb_per_s', 'tflop_per_s', 'peak_fraction')
        self.assertLessEqual({*numbers, 'median_ns', 'mean_ns', 'min_ns', 'q1_ns', 'q3_ns'}, set(rows[0]))
        for r in rows:
            self.assertEqual([k for k, v in r.items() if v and (k.endswith('_ns') or k in numbers)], [])

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
    main()
