# shellcheck disable=SC2046 # facts prints words
# Fetches a file to this host and prints the result as KEY=VALUE lines. curl reads its config, including URL and
# secrets, from standard input.
# $1 dest $2 name in a folder $3 algorithm $4 digest $5 force $6 backup $7 mode $8 owner $9 group
# ${10} check mode $11 folder for the temporary file $12 seconds $13 URL for wget, "" when only curl may be used $14 options for wget
dest=$1 name=$2 algo=$3 sum=$4 force=$5 backup=$6 mode=$7 owner=$8 group=$9
shift 9
check=$1 folder=$2 limit=$3 url=$4 options=$5
has() { command -v "$1" >/dev/null 2>&1; }
say() { printf '%s=%s\n' "$1" "$2"; }
digest() { "$1sum" <"$2" | { read -r d _; echo "$d"; }; }
facts() { stat -L -c '%a %u %g %U %G %s' "$1"; }
set_attributes() {
  if [ -n "$owner" ]; then chown "$owner" "$1" || exit 1; fi
  if [ -n "$group" ]; then chgrp "$group" "$1" || exit 1; fi
  if [ -n "$mode" ]; then chmod "$mode" "$1" || exit 1; fi
}
report() {
  say after "$(facts "$dest")"; say sha1 "$(digest sha1 "$dest")"; say md5 "$(digest md5 "$dest")"
  exit 0
}
[ -d "$dest" ] && dest=${dest%/}/$name
say dest "$dest"
old=
if [ -e "$dest" ]; then old=1; say before "$(facts "$dest")"; fi
fetch=1
if [ -n "$old" ] && [ -n "$sum" ] && [ "$force" = 0 ] && [ "$(digest "$algo" "$dest")" = "$sum" ]; then fetch=; fi
if [ "$check" = 1 ]; then
  [ -n "$old" ] && [ "$force" = 0 ] && [ -z "$sum" ] && fetch=
  say fetch "$fetch"
  exit 0
fi
say fetch "$fetch"
if [ -z "$fetch" ]; then set_attributes "$dest"; report; fi
[ -n "$folder" ] || folder=$(dirname "$dest")
[ -d "$folder" ] || { say problem "Destination $folder does not exist"; exit 0; }
[ -w "$folder" ] || { say problem "Destination $folder is not writable"; exit 0; }
if has curl; then tool=curl
elif [ -n "$url" ] && has wget; then tool=wget
else say tool none; exit 0
fi
tmp=$(mktemp "$folder/.kk.XXXXXXXX") || exit 1
trap 'rm -f "$tmp"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 141' PIPE; trap 'exit 143' TERM
if [ $tool = curl ]; then
  if [ -n "$old" ] && [ "$force" = 0 ] && [ -z "$sum" ]; then code=$(curl -K - -o "$tmp" -w '%{http_code}' -z "$dest"); rc=$?
  else code=$(curl -K - -o "$tmp" -w '%{http_code}'); rc=$?
  fi
else
  # shellcheck disable=SC2086 # options are words
  wget -q $options -T "$limit" -O "$tmp" "$url"; rc=$? code=200
  [ $rc = 0 ] || code=-1
fi
say code "$code"
if [ $rc != 0 ]; then say failed $rc; exit 0; fi
if [ "$code" = 304 ]; then set_attributes "$dest"; report; fi
if [ -n "$sum" ]; then
  got=$(digest "$algo" "$tmp")
  if [ "$got" != "$sum" ]; then say mismatch "$got"; exit 0; fi
fi
say src_sha1 "$(digest sha1 "$tmp")"
if [ -n "$old" ] && [ "$(digest sha256 "$dest")" = "$(digest sha256 "$tmp")" ]; then set_attributes "$dest"; report; fi
if [ -n "$old" ]; then
  if [ "$backup" = 1 ]; then
    saved=$dest.$$.$(date +%Y-%m-%d@%H:%M:%S)~
    cp -p "$dest" "$saved" || exit 1
    say backup "$saved"
  fi
  set -- $(facts "$dest")
  chown "$2:$3" "$tmp" 2>/dev/null
  chmod "$1" "$tmp" || exit 1
else
  chmod "$(printf %o $((0666 & ~0$(umask))))" "$tmp" || exit 1
fi
set_attributes "$tmp"
mv -f "$tmp" "$dest" || exit 1
say replaced 1
report
