#!/usr/bin/env python3
"""test_plugin.py ASSAY SOURCE_ROOT BUILD/tests: plugins that end, crash or exit where they are loaded and planned. Never a status 0, never
assay's own death, always the plugin's name."""
import os
import sys

PLUGIN = os.path.join(os.path.abspath(sys.argv.pop(3)), 'plugin', 'deadly.so')

from run_base import HEAD, RunBase, main  # noqa: E402

SUITE = HEAD.replace('NAME', 'deadly').replace('KERNEL', 'demo.deadly') + '''\
    arms: {arms: [other]}
    axes: {n: [8, 20]}
    checks: {identity: {against: shipped}}
'''


class Plugin(RunBase):
    def each_verb(self, how, words, verbs=('run', 'check', 'list', 'list-kernels', 'explain')):
        """Every verb that takes a plugin ends with 2 and one message that names it."""
        self.put('d.yaml', SUITE)
        line = {'run': ['run', 'd.yaml', '-o', 'r.jsonl'], 'check': ['check', 'd.yaml'], 'list': ['list', 'd.yaml'],
                'list-kernels': ['list'], 'explain': ['explain', 'd.yaml', 'n=20']}
        for verb in verbs:
            p = self.assay(*line[verb], '--plugin', PLUGIN, env={'ASSAY_TEST_DEADLY': how})
            self.assertEqual(p.returncode, 2, '%s %s\n%s\n%s' % (how, verb, p.stdout, p.stderr))
            self.assertEqual(p.stdout, '')
            self.assertIn(PLUGIN, p.stderr)
            self.assertRegex(p.stderr, words)
            self.assertFalse(os.path.exists(os.path.join(self.dir, 'r.jsonl')))

    def test_an_honest_one(self):
        self.put('d.yaml', SUITE)
        self.assay('run', 'd.yaml', '--plugin', PLUGIN, '-o', 'r.jsonl', expect=0)
        self.assertEqual([c['status'] for c in self.cells('r.jsonl')], ['pass', 'pass'])
        self.assertIn('2 cells', self.assay('check', 'd.yaml', '--plugin', PLUGIN, expect=0).stdout)
        self.assertEqual(self.assay('list', 'd.yaml', '--count', '--plugin', PLUGIN, expect=0).stdout, '2\n')
        self.assertIn('demo.deadly', self.assay('list', '--plugin', PLUGIN, expect=0).stdout)

    def test_constructors(self):
        # A sanitizer makes an exit of some crashes.
        self.each_verb('exit', 'ended the process with status ')
        self.each_verb('abort', r'died of signal 6 |ended the process with status ')
        self.each_verb('crash', r'died of signal 11 |ended the process with status ')

    def test_hooks(self):
        planned = ('run', 'check', 'list', 'explain')
        self.each_verb('shape_exit', 'ended the process with status ', planned)
        self.each_verb('shape_crash', r'died of signal 11 |ended the process with status ', planned)
        self.each_verb('refuse_abort', r'died of signal 6 |ended the process with status ', planned)

    def test_an_exit_in_assay_itself_is_no_success(self):
        self.put('d.yaml', SUITE)
        for args in (['run', 'd.yaml', '-o', 'r.jsonl'], ['check', 'd.yaml'], ['list']):
            p = self.assay(*args, '--plugin', PLUGIN, env={'ASSAY_TEST_DEADLY': 'exit_in_assay'}, expect=3)
            self.assertIn('called exit(0)', p.stderr)


if __name__ == '__main__':
    main()
