#!/usr/bin/env python3
"""test_run.py ASSAY SOURCE_ROOT: assay run and assay show from outside: output, usage. No assertion depends on a time."""
import json
import os
import resource
import shutil
import signal
import subprocess

from run_base import ASSAY, FAULTS, ROOT, RunBase, main, work_suite


class Run(RunBase):
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
        # Not even the header: nothing is run.
        p = self.assay('run', 'w.yaml', '-o', '/dev/full', expect=2)
        self.assertIn('No space left', p.stderr)
        self.assertNotIn('--resume', p.stderr)
        self.assertNotIn('cell', p.stdout)

    def test_a_folder_that_takes_no_file_is_told_before_anything_runs(self):
        self.put('w.yaml', work_suite(100, 1))
        suite = os.path.join(self.dir, 'w.yaml')
        for args in (('run', suite), ('selftest', '--quick')):
            p = subprocess.run([ASSAY, *args], cwd='/proc', env=self.env, capture_output=True, text=True, timeout=100)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn('hint: -o FILE names another place', p.stderr)
            self.assertEqual(p.stdout, '')

    def test_colour_is_for_terminals_that_have_it(self):
        self.put('bad.yaml', 'x: 1\n')
        for more, coloured in (({'TERM': 'xterm'}, True), ({'TERM': 'dumb'}, False), ({'TERM': 'xterm', 'NO_COLOR': '1'}, False),
                               ({'TERM': 'xterm', 'NO_COLOR': ''}, True)):
            env = {k: v for k, v in self.env.items() if k != 'NO_COLOR'}
            for verb in ('check', 'run', 'list'):
                master, slave = os.openpty()
                subprocess.run([ASSAY, verb, 'bad.yaml'], cwd=self.dir, env=env | more, stdout=subprocess.DEVNULL, stderr=slave, timeout=100)
                os.close(slave)
                text = os.read(master, 100000)
                os.close(master)
                self.assertIn(b'unknown key', text)
                self.assertEqual(b'\x1b[' in text, coloured, (verb, more))

    def limited(self, size, *args, expect=0):
        """A command that may write files of so many bytes."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        p = subprocess.run([ASSAY, *args], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60, preexec_fn=limit)
        self.assertEqual(p.returncode, expect, p.stderr)
        return p

    def test_a_file_size_limit_is_an_error_of_a_write(self):
        self.put('w.yaml', work_suite(100, 4))
        self.assay('run', 'w.yaml', '-o', 'whole.jsonl', expect=0)
        lines = self.get('whole.jsonl').splitlines(keepends=True)
        two = len(''.join(lines[:3])) + 100  # header, two cells, and a part of the third
        # Not even the header: nothing was run, and no empty file is in the way of the next try.
        p = self.limited(100, 'run', 'w.yaml', '-o', 'cut.jsonl', expect=2)
        self.assertIn('File too large; raise the limit (ulimit -f) and do it again', p.stderr)
        self.assertNotIn('cut.jsonl', os.listdir(self.dir))
        for size in (two,):
            p = self.limited(size, 'run', 'w.yaml', '-o', 'cut.jsonl', expect=3)
            self.assertIn('File too large; what is written is whole: raise the limit (ulimit -f) and go on with --resume', p.stderr)
            self.assertLessEqual(os.path.getsize(os.path.join(self.dir, 'cut.jsonl')), size)
            # What was written is whole lines, and the run goes on from there.
            self.assertTrue(all(line.endswith('}\n') for line in self.get('cut.jsonl').splitlines(keepends=True)))
            p = self.assay('run', 'w.yaml', '-o', 'cut.jsonl', '--resume', expect=0)
            self.assertEqual(len(self.cells('cut.jsonl')), 4)
        # Every other command that writes: told, exit 3, and no half file where a whole one is expected.
        for args, out in ((('rejudge', 'whole.jsonl', '-o', 'r.jsonl'), None), (('merge', 'whole.jsonl', '-o', 'm.jsonl', '--partial'), None),
                          (('report', 'whole.jsonl', '-o', 'r.html'), 'r.html'), (('report', 'whole.jsonl', '-o', 'r.csv'), 'r.csv'),
                          (('diff', 'whole.jsonl', 'whole.jsonl', '-o', 'd.txt'), 'd.txt'),
                          (('table', 'suggest', 'whole.jsonl', '--key', 'steps', '-o', 't.yaml'), 't.yaml'),
                          (('run', 'w.yaml', '--no-fork', '--filter', 'steps=100', '-o', 'nf.jsonl'), 'nf.jsonl')):
            p = self.limited(100, *args, expect=2 if args[0] == 'run' else 3)
            self.assertRegex(p.stderr, 'cannot write|File too large', args)
            self.assertNotIn('--resume', p.stderr, args)  # which none of them has
            self.assertNotIn(out, os.listdir(self.dir))

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


if __name__ == '__main__':
    main()
