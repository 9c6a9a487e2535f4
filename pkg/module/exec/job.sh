# Prints the state of a job: "missing", "up" (running or done) or "down" (its supervisor is gone); its file; the file's content.
# $1 id, $2 action: status, cleanup (delete the file), end (stop its processes), $3 script that stops it
dir=${ANSIBLE_ASYNC_DIR:-$HOME/.ansible_async}
case $dir in \~/*) dir=$HOME/${dir#??} ;; esac
job=$dir/$1
state=missing
if [ -e "$job" ]; then
  state=down
  pid=$(cat "$job.pid" 2>/dev/null)
  if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
    if [ ! -r "/proc/$pid/cmdline" ] || grep -qs "$1" "/proc/$pid/cmdline"; then state=up; fi
  fi
fi
if [ "$2" = end ]; then
  (eval "$3")
  i=0
  while [ -e "$job.pid" ] && [ $i -lt 5 ]; do sleep 1; i=$((i + 1)); done
fi
printf '%s\n%s\n' $state "$job"
[ $state = missing ] || [ "$2" = cleanup ] || cat "$job"
[ "$2" != cleanup ] || rm -f "$job" "$job".*
