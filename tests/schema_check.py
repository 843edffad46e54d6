#!/usr/bin/env python3
"""Holds files against the schemas that assay was built with.

  schema_check.py --schema schemas/verdict.schema.json FILE.jsonl...     every line of every file
  schema_check.py --schema schemas/suite.schema.json --json FILE...      each file is one document (`assay check --json`)
  schema_check.py --assay build/assay --schema … FILE                    also: `assay schema` prints this very schema

A verdict file is read as strictly as it is meant: no key twice, no NaN or Infinity, UTF-8. The last line may be torn only with
--torn. Exit status 0: all valid; 1: a line is not; 2: usage.
"""
import argparse
import json
import subprocess
import sys

import jsonschema


def no_doubles(pairs):
    seen = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError('key %r twice' % key)
        seen[key] = value
    return seen


def no_constant(text):
    raise ValueError('%s is not JSON' % text)


def parse(text):
    return json.loads(text, object_pairs_hook=no_doubles, parse_constant=no_constant)


def best_error(validator, record):
    """The error of the branch that the record's kind names: oneOf alone says only that none fits."""
    kind = record.get('kind') if isinstance(record, dict) else None
    definitions = validator.schema.get('definitions', {})
    if kind in definitions:
        branch = dict(definitions[kind])
        branch['definitions'] = definitions
        errors = sorted(jsonschema.Draft7Validator(branch).iter_errors(record), key=lambda e: list(map(str, e.path)))
    else:
        errors = list(validator.iter_errors(record))
    if not errors:
        return None
    e = jsonschema.exceptions.best_match(errors)
    return '%s: %s' % ('/'.join(map(str, e.absolute_path)) or '(record)', e.message[:300])


def check_document(validator, text, place):
    try:
        record = parse(text)
    except ValueError as e:
        print('%s: %s' % (place, e))
        return False
    if validator.is_valid(record):
        return True
    print('%s: %s' % (place, best_error(validator, record) or 'fits no kind of record'))
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--schema', required=True)
    p.add_argument('--json', action='store_true', help='each file is one JSON document')
    p.add_argument('--torn', action='store_true', help='the last line may be cut short')
    p.add_argument('--assay', help='this binary must print the same schema')
    p.add_argument('--assay-schema', default='verdict', help='the name to ask `assay schema` for')
    p.add_argument('files', nargs='*')
    a = p.parse_args()
    with open(a.schema, encoding='utf-8') as f:
        schema = parse(f.read())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    ok, n = True, 0
    if a.assay:
        told = subprocess.run([a.assay, 'schema', a.assay_schema], capture_output=True, check=True).stdout
        if parse(told.decode('utf-8')) != schema:
            print('%s schema %s differs from %s' % (a.assay, a.assay_schema, a.schema))
            ok = False
    if not a.files and not a.assay:
        p.error('no files')
    for path in a.files:
        with open(path, 'rb') as f:
            data = f.read()
        if a.json:
            ok = check_document(validator, data.decode('utf-8'), path) and ok
            n += 1
            continue
        lines = data.split(b'\n')
        torn = lines.pop()
        if torn and not a.torn:
            print('%s:%d: cut short' % (path, len(lines) + 1))
            ok = False
        if not lines:
            print('%s: empty' % path)
            ok = False
        for i, line in enumerate(lines, 1):
            ok = check_document(validator, line.decode('utf-8'), '%s:%d' % (path, i)) and ok
            n += 1
    print('%d %s, %s' % (n, 'documents' if a.json else 'lines', 'all valid' if ok else 'NOT all valid'))
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
