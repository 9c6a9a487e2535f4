# Parameters: the folder, what to do, and what that needs.
dir=$1 todo=$2
shift 2
sum() { kk_sum=$(sha256sum <"$1") && kk_sum=${kk_sum%% *}; }
case $todo in
make) # prints zstd if the host can unpack that
	[ ! -L "$dir" ] || { echo "$dir is a symbolic link: remove it" >&2; exit 1; }
	mkdir -p "$dir" && chmod 700 "$dir" || exit 1
	! command -v zstd >/dev/null || echo zstd
	;;
run) # PROGRAM, which is there as PROGRAM.gz
	umask 077
	# The program removes its file itself, if it can be run.
	gzip -dc "$1.gz" >"$1" && chmod 700 "$1" && rm -f "$1.gz" && "$1" -once "$dir"
	code=$?
	rm -f "$1.gz" "$1"
	exit "$code"
	;;
has) # NAME...: prints those with the right bytes
	for f; do
		if [ -f "$dir/$f" ] && sum "$dir/$f" && [ "$kk_sum" = "$f" ]; then echo "$f"; fi
	done
	;;
unpack) # PACKED CONTENT
	umask 077
	trap 'rm -f "$dir/.part-$$"' EXIT
	zstd -dqc "$dir/$1" >"$dir/.part-$$" && sum "$dir/.part-$$" || exit 1
	[ "$kk_sum" = "$2" ] || { echo "$1 contains $kk_sum instead of $2" >&2; exit 1; }
	mv -f "$dir/.part-$$" "$dir/$2"
	;;
forget) rm -f "$dir/$1" ;;
esac
