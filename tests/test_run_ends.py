#!/usr/bin/env python3
"""test_run_ends.py ASSAY SOURCE_ROOT: how a run ends and goes on: kills, signals, resumes, crashes, waivers. No assertion depends on a time."""
import os
import shutil
import signal
import subprocess

from run_base import ASSAY, FAULTS, ROOT, RunBase, main, work_suite


class RunEnds(RunBase):
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

    def test_a_file_that_cannot_be_resumed_says_what_can_be_done(self):
        self.put('w.yaml', work_suite(100, 1))
        for text in ('{"kind":"header","form', 'no verdict file\n'):
            self.put('torn.jsonl', text)
            p = self.assay('run', 'w.yaml', '-o', 'torn.jsonl', '--resume', expect=2)
            self.assertIn('cannot be resumed: --force starts anew, -o names another file', p.stderr)
            self.assertEqual(self.get('torn.jsonl'), text)
        self.assay('run', 'w.yaml', '-o', 'torn.jsonl', '--force', expect=0)

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
            self.assertRegex(p.stderr, '^assay %s: cuda: no (NVIDIA driver on this machine|device is visible)' % verb)

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

    def test_a_waiver_of_what_no_cell_has_is_told(self):
        waived = ('waivers:\n'
                  '  - {id: no-arm, match: {kernel: probe.work}, expect: mismatch, arm: mroe=10, reason: a slip}\n'
                  '  - {id: no-check, match: "kernel=probe.work,steps=110", expect: regression, reason: nobody asks}\n')
        text = work_suite(100, 3)
        text = text.replace(', regression: {select: shipped, against: shipped}', '') + waived
        why = ["none that it matches has an arm 'mroe=10'; did you mean 'more=10'?", 'none that it matches has a regression check']
        self.put('w.yaml', text)
        p = self.assay('run', 'w.yaml', '-o', 'a.jsonl', expect=0)
        said = [line.split(None, 1)[1] for line in p.stdout.splitlines() if line.startswith('waiver')]
        self.assertEqual(said, ['no-arm fits no cell: ' + why[0], 'no-check fits no cell: ' + why[1]])
        self.assertEqual([w['cells'] for w in self.records('a.jsonl')[-1]['waivers']], [0, 0])
        p = self.assay('check', 'w.yaml', expect=0)
        for w in why:
            self.assertIn('warning: this waiver fits no cell: ' + w, p.stderr)
        # The file of another suite's waivers is no slip of this one.
        self.put('shared.yaml', 'assay: 1\n' + waived)
        self.put('i.yaml', text[:text.index('waivers:')].replace('suite:', 'include: [shared.yaml]\nsuite:', 1))
        p = self.assay('run', 'i.yaml', '-o', 'i.jsonl', expect=0)
        self.assertNotIn('\nwaiver ', p.stdout)

    def test_a_ratio_of_a_part_is_not_believed(self):
        ratio = 'checks: {ratio: {of: more=10, over: shipped, aggregates: [geomean], bar: {at_least: -50pp}}}'

        # All cells are of one group: the steps are the geometry's.
        def suite(steps, cells):
            text = work_suite(steps, cells)
            start = text.index('checks: {identity')
            text = text[:start] + ratio + text[text.index('\n', start):]
            names = ['g%d' % i for i in range(cells)]
            text = text.replace('  none: {}\n', ''.join('  %s: {steps: %d}\n' % (g, steps + 10 * i) for i, g in enumerate(names)))
            text = text.replace('geometry: none', 'geometry: [%s]' % ', '.join(names))
            return ''.join(line + '\n' for line in text.splitlines() if 'axes:' not in line)

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
        # rejudge has no more cells than the run had.
        self.assay('rejudge', 'i.jsonl', '-o', 'ir.jsonl', expect=130)
        self.assertEqual(self.get('ir.jsonl'), self.get('i.jsonl'))
        self.put('w.yaml', suite(1000, 3))
        self.assay('run', 'w.yaml', '-o', 'a.jsonl')
        for r in self.records('a.jsonl'):
            self.assertNotIn('incomplete', str(r.get('reason')))

    def test_a_bar_is_judged_of_the_whole_group(self):
        def ratios(name):
            return {r['kernel'] + r['data']: (r['verdict'], (r['reason'] or '').split(':')[0])
                    for r in self.records(name) if r['kind'] == 'aggregate' and r.get('check') == 'ratio'}

        # Two geometries in a group, two groups; a bar that nothing meets.
        self.put('g.yaml', '''\
assay: 1
suite: g
geometries:
  one: {rows: 32}
  two: {rows: 64}
distributions:
  unit: {fill: uniform, range: [-1, 1]}
  wide: {fill: uniform, range: [-2, 2]}
timing: {rounds: 8, scrub: none, warmup: {launches: 1}}
cases:
  - id: c
    kernels: [probe.faults]
    geometry: [one, two]
    arms: {arms: [{split: 2}]}
    data: [unit, wide]
    axes: {d: [96]}
    checks: {ratio: {of: split=2, over: shipped, aggregates: [geomean], bar: {at_least: 9900pp}}}
rigs:
  - {match: {}, timing: diagnostic}
''')
        missed, part = ('missed', ''), ('invalid', 'incomplete')
        self.assay('run', 'g.yaml', '-o', 'all.jsonl', expect=1)
        self.assertEqual(ratios('all.jsonl'), {'probe.faultsunit': missed, 'probe.faultswide': missed})
        header = self.records('all.jsonl')[0]
        self.assertEqual(sorted(header['ratio_groups'].values()), [2, 2, 4])
        # A filter that takes whole groups judges them, one that cuts a group does not.
        self.assay('run', 'g.yaml', '-o', 'unit.jsonl', '--filter', 'data=unit', expect=1)
        self.assertEqual(ratios('unit.jsonl'), {'probe.faultsunit': missed})
        p = self.assay('run', 'g.yaml', '-o', 'one.jsonl', '--filter', 'geometry=one', expect=0)
        self.assertEqual(ratios('one.jsonl'), {'probe.faultsunit': part, 'probe.faultswide': part})
        self.assertIn('NOT BELIEVED, incomplete: 1 cell of this ratio did not run', p.stdout)
        self.assay('rejudge', 'one.jsonl', '-o', 'again.jsonl', expect=0)
        self.assertEqual(self.get('again.jsonl'), self.get('one.jsonl'))
        self.assay('rejudge', 'one.jsonl', '-o', 'set.jsonl', '--set', 'margin=3%', expect=0)
        self.assertEqual(ratios('set.jsonl'), ratios('one.jsonl'))
        # Shards: none of them is the whole; all of them together are.
        for i in '123':
            self.assay('run', 'g.yaml', '-o', 's%s.jsonl' % i, '--shard', i + '/3', expect=0)
            self.assertEqual(set(ratios('s%s.jsonl' % i).values()), {part})
        self.assay('merge', 's1.jsonl', 's3.jsonl', '-o', 'p.jsonl', '--partial', expect=3)
        self.assertIn(part, ratios('p.jsonl').values())
        self.assertNotIn('met', {v for v, _ in ratios('p.jsonl').values()})
        self.assay('merge', 's1.jsonl', 's2.jsonl', 's3.jsonl', '-o', 'm.jsonl', expect=0)
        self.assertEqual(ratios('m.jsonl'), ratios('all.jsonl'))
        self.assertEqual(self.records('m.jsonl')[-1]['exit'], 1)

    def test_who_reaches_far_is_wrong(self):
        self.put('far.yaml', FAULTS[:FAULTS.index('cases:')] + '''cases:
  - {id: behind, kernels: [probe.faults], geometry: g, arms: {arms: [{split: 2}, overrun_far]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
  - {id: ahead, kernels: [probe.faults], geometry: g, arms: {arms: [underrun_far, {split: 2}]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
  - {id: after, kernels: [probe.faults], geometry: g, arms: {arms: [{split: 4}]}, data: unit, axes: {rows: [32]}, checks: {identity: {against: shipped}}}
''')
        p = self.assay('run', 'far.yaml', '-o', 'far.jsonl', expect=1)
        cells = {c['case']: c for c in self.cells('far.jsonl')}
        self.assertEqual({k: c['status'] for k, c in cells.items()}, {'behind': 'wrong', 'ahead': 'wrong', 'after': 'pass'})
        self.assertRegex(cells['behind']['reason'], r'memory overrun_far: \w.* far behind out: at byte 2097280 of 128; that ended the process')
        self.assertRegex(cells['ahead']['reason'], r'memory underrun_far: \w.* far before out: 16000 bytes ahead of it; that ended the process')
        for c, arm in ((cells['behind'], 'overrun_far'), (cells['ahead'], 'underrun_far')):
            self.assertEqual([f['arm'] for f in c['checks'] if f['status'] != 'pass'], [arm])
        self.assertIn('exit 1', p.stdout)
        # The same verdicts from the same file.
        self.assay('rejudge', 'far.jsonl', '-o', 'again.jsonl', expect=1)
        self.assertEqual({c['case']: c['status'] for c in self.cells('again.jsonl')}, {k: c['status'] for k, c in cells.items()})

    def test_who_changes_the_process_is_told_whatever_the_order(self):
        cells, arms = '', ('leaves_timer', 'leaves_omp', 'leaves_signals', 'leaves_thread', 'closes_files')
        for arm in arms:
            for first in (0, 1):
                order = [arm, '{split: 2}'] if first else ['{split: 2}', arm]
                cells += ('  - {id: %s-%d, kernels: [probe.faults], geometry: g, arms: {arms: [%s]}, data: unit, axes: {rows: [32]}, '
                          'checks: {identity: {against: shipped}, regression: {select: split=2, against: shipped}}}\n'
                          % (arm, first, ', '.join(order)))
                cells += ('  - {id: after-%s-%d, kernels: [probe.faults], geometry: g, arms: {arms: [{split: 4}]}, data: unit, axes: {rows: [32]}, '
                          'checks: {identity: {against: shipped}}}\n' % (arm, first))
        self.put('leaves.yaml', FAULTS[:FAULTS.index('cases:')] + 'cases:\n' + cells + 'rigs:\n  - {match: {}, timing: diagnostic}\n')
        self.assay('run', 'leaves.yaml', '-o', 'leaves.jsonl', expect=3)
        for c in self.cells('leaves.jsonl'):
            bad = [(f['check'], f['arm'], f['status']) for f in c['checks'] if f['status'] != 'pass']
            if c['case'].startswith('after-'):
                self.assertEqual((c['status'], bad), ('pass', []), c['case'])
            else:
                arm = c['case'][:-2]
                status = 'error' if arm == 'closes_files' else 'invalid'
                self.assertEqual((c['status'], bad), (status, [('run', arm, status)]), c['reason'])

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


if __name__ == '__main__':
    main()
