# bash completion of assay. Verbs and options come from the binary's own help, so that they are never out of date.

_assay_words() { # VERB: its long options; without a verb: the verbs
	if [ $# -eq 0 ]; then
		"$_assay_bin" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'
	else
		"$_assay_bin" "$1" --help 2>/dev/null | grep -o -e '--[a-z][a-z-]*' | sort -u
	fi
}

_assay() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} _assay_bin=${COMP_WORDS[0]}
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_assay_words) --help --version" -- "$cur")
		return
	fi
	case $prev in
	--backend)
		mapfile -t COMPREPLY < <(compgen -W "$("$_assay_bin" --version 2>/dev/null | sed -n 's/^backends: //p')" -- "$cur")
		return
		;;
	--checks)
		mapfile -t COMPREPLY < <(compgen -W 'identity repeat invariant reference regression ratio' -- "$cur")
		return
		;;
	--fail-on)
		mapfile -t COMPREPLY < <(compgen -W 'undecided incomparable bits missing added faster fixed waived' -- "$cur")
		return
		;;
	--dir)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--suite)
		mapfile -t COMPREPLY < <(compgen -f -X '!*.y?(a)ml' -- "$cur"; compgen -d -S / -- "$cur")
		return
		;;
	--shard)
		mapfile -t COMPREPLY < <(compgen -W 'auto' -- "$cur")
		return
		;;
	--filter | --cell | --least | --margin | --last | --set | --device | --arm | --launches | --processes)
		return
		;;
	--inconclusive)
		mapfile -t COMPREPLY < <(compgen -W 'pass skip fail' -- "$cur")
		return
		;;
	-o | --output | --rerun-failed | --plugin | --tau-store | --census | --rates)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_assay_words "$verb")" -- "$cur")
		return
	fi
	case $verb in
	run | check | list | explain) mapfile -t COMPREPLY < <(compgen -f -X '!*.y?(a)ml' -- "$cur"; compgen -d -S / -- "$cur") ;;
	ab) mapfile -t COMPREPLY < <(compgen -f -X '!*.so' -- "$cur"; compgen -d -S / -- "$cur") ;;
	bisect) mapfile -t COMPREPLY < <(compgen -W "$(git for-each-ref --format='%(refname:short)' 2>/dev/null)" -- "$cur") ;;
	baseline) mapfile -t COMPREPLY < <(compgen -W promote -- "$cur"; compgen -f -X '!*.jsonl' -- "$cur"; compgen -d -S / -- "$cur") ;;
	show | diff | history | merge | rejudge | report) mapfile -t COMPREPLY < <(compgen -f -X '!*.jsonl' -- "$cur"; compgen -d -S / -- "$cur") ;;
	table) mapfile -t COMPREPLY < <(compgen -W 'suggest check export' -- "$cur"; compgen -f -- "$cur") ;;
	schema) mapfile -t COMPREPLY < <(compgen -W 'suite verdict explain' -- "$cur") ;;
	help) mapfile -t COMPREPLY < <(compgen -W "$(_assay_words)" -- "$cur") ;;
	esac
}

complete -o filenames -o nosort -F _assay assay
