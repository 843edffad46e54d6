# shellcheck shell=bash
# Sourced by the other scripts: installs what is missing, builds.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*" >&2; }

# need PACKAGE...: installs those Debian packages that are missing; quick when there are none.
need() {
	local missing=() p
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	local sudo=()
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || { echo "$0: not root and no sudo: install ${missing[*]} yourself" >&2; exit 2; }
		sudo=(sudo)
	fi
	say "installing ${missing[*]}"
	"${sudo[@]}" apt-get update -qq
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# shellcheck disable=SC2034 # used by the scripts that source this
build_packages=(gcc libc6-dev libgomp1 meson ninja-build pkg-config libyaml-dev libjansson-dev libssl-dev git ca-certificates)

# build FOLDER [meson options...]: sets up once, compiles what changed.
build() {
	local dir=$1
	shift
	if [ ! -f "$dir/build.ninja" ]; then
		meson setup "$dir" "$root" "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; return 1; }
		rm -f "$dir.log"
	fi
	ninja -C "$dir" >"$dir/build.log" 2>&1 || { tail -n 60 "$dir/build.log" >&2; return 1; }
}
