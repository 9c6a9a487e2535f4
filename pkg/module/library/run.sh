# A program of the project, run once. On standard input: its arguments as one
# line of JSON, the text of its file of arguments as one line with escapes, and
# the program itself. read takes one byte at a time, so nothing of that is lost.
umask 077
tmp=$(mktemp -d "${TMPDIR:-/tmp}/kk.XXXXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 141' PIPE
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
IFS= read -r json
IFS= read -r file
printf '%s\n' "$json" >"$tmp/stdin"
printf '%b\n' "$file" >"$tmp/args"
cat >"$tmp/module" && chmod 700 "$tmp/module" || exit 1
if [ -x "$tmp/module" ]; then
	"$tmp/module" "$tmp/args" <"$tmp/stdin"
	exit
fi
# The folder for temporary files may forbid execution: then the interpreter is run on it.
IFS= read -r line <"$tmp/module"
case $line in
'#!'*) ;;
*)
	echo "$tmp forbids execution, and the module is no script: set TMPDIR to a folder that allows it" >&2
	exit 126
	;;
esac
# The words of the interpreter are split, as the kernel does.
# shellcheck disable=SC2086
${line#??} "$tmp/module" "$tmp/args" <"$tmp/stdin"
