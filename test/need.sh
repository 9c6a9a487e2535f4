#!/usr/bin/env bash
# Install Debian packages whose commands, or files, are missing: need.sh COMMAND:PACKAGE[,PACKAGE...] ...
set -euo pipefail

missing=()
for need in "$@"; do
  if command -v "${need%%:*}" >/dev/null || [ -e "${need%%:*}" ]; then continue; fi
  IFS=, read -ra packages <<<"${need#*:}"
  missing+=("${packages[@]}")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

echo "install ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
