# Starts a job that outlives the connection. Prints the path of its status file.
# $1 id, $2 seconds that it may take, $3 JSON to keep with it, $4 command line,
# $5 script that supervises it, $6 script that stops it, $7 bytes of an output to keep; its input is on standard input
mask=$(umask)
umask 077
dir=${ANSIBLE_ASYNC_DIR:-$HOME/.ansible_async}
case $dir in \~/*) dir=$HOME/${dir#??} ;; esac
[ -d "$dir" ] || mkdir -p "$dir" || exit 1
job=$dir/$1
cat >"$job.in" || exit 1
watch=$5
set -- "$job" "$@" "$mask"
launch() {
  if command -v setsid >/dev/null 2>&1; then setsid /bin/sh -c "$watch" "$@" </dev/null 2>/dev/null &
  else (trap '' HUP; exec /bin/sh -c "$watch" "$@" </dev/null 2>/dev/null) & fi
}
# The watcher closes the pipe when it has a session of its own.
up=$(launch kk-job "$@")
[ "$up" = up ] || { echo "the job did not start" >&2; exit 1; }
printf '%s\n' "$job"
