#!/usr/bin/env bash
# What only a GPU can show of the cuda backend: run by hand on a machine with one. Not part of scripts/test.
#
#   tests/cuda/run.sh [BUILD] [TEST...]     BUILD: a build folder (build); TEST: only these, as in Device.test_faults
#
# Takes about three minutes; compute-sanitizer, cuda-gdb and ncu are used where they are on the PATH. Exit status 0 only if all passed.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
[ $# = 0 ] || shift
status=0
if [ $# = 0 ]; then
	"$build/tests/test_fill_cuda" || status=1 # 77, skipped, is a failure here
fi
python3 "$root/tests/cuda/test_device.py" "$build/runner/assay" "$@" || status=1
exit $status
