#!/usr/bin/env python3
"""embed.py IN OUT NAME: a text file as `static const unsigned char NAME[]`, so that the binary carries what it was built with."""
import sys

source, target, name = sys.argv[1:]
data = open(source, 'rb').read()
with open(target, 'w') as out:
    out.write('static const unsigned char %s[] = {' % name)
    for i, byte in enumerate(data):
        out.write('%s%d,' % ('\n\t' if i % 24 == 0 else ' ', byte))
    out.write('\n};\n')
