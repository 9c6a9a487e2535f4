# Runs a job, stops it after its timeout, and writes its result.
# $1 file of the job, $2 id, $3 seconds, $4 JSON to keep, $5 command line, $6 this script, $7 script that stops it,
# $8 bytes of an output to keep, $9 umask
job=$1 id=$2 limit=$3 note=$4 line=$5 end=$7 keep=$8 mask=$9
put() { cat >"$job.new" && mv -f "$job.new" "$job"; }
about() { printf '{"ansible_job_id": "%s", "started": 1, "finished": %s, "kk": %s' "$id" "$1" "$note"; }
clock() { date '+%Y-%m-%d %H:%M:%S.000000'; }
escapes=$(
  # shellcheck disable=SC1003 # a backslash
  printf '%s\n' 's/[\"]/\\&/g'
  for n in 1 2 3 4 5 6 7 8 9 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31; do
    # shellcheck disable=SC2059 # the format is an octal escape
    printf 's/%b/\\\\u%04x/g\n' "$(printf '\\0%o' $n)" $n
  done
)
text() { # the content of a file as a JSON string; the dot keeps its last newline
  printf '"'
  { tail -c "$keep" "$1"; echo .; } | LC_ALL=C tr -d '\000' | LC_ALL=C sed -e "$escapes" -e '$!s/$/\\n/' -e '$s/\.$//' | tr -d '\n'
  printf '"'
}
start=$(clock)
echo $$ >"$job.pid"
{ about 0; echo '}'; } | put || exit 1
echo up
exec >/dev/null
(
  umask "$mask"
  KK_RUN=$id
  export KK_RUN
  exec /bin/sh -c "$line"
) <"$job.in" >"$job.out" 2>"$job.err" &
main=$!
(
  trap 'kill $! 2>/dev/null; exit 0' TERM
  sleep "$limit" &
  wait $!
  trap '' TERM
  : >"$job.late"
  eval "$end"
) &
timer=$!
wait $main
rc=$?
if [ -e "$job.late" ]; then wait $timer; else kill $timer; fi
{
  about 1
  printf ', "rc": %s, "start": "%s", "end": "%s"' $rc "$start" "$(clock)"
  [ ! -e "$job.late" ] || printf ', "late": 1'
  printf ', "stdout": '
  text "$job.out"
  printf ', "stdout_bytes": %s, "stderr": ' $(($(wc -c <"$job.out")))
  text "$job.err"
  printf ', "stderr_bytes": %s' $(($(wc -c <"$job.err")))
  echo '}'
} | put
rm -f "$job.in" "$job.out" "$job.err" "$job.pid" "$job.late"
