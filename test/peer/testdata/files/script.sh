#!/bin/sh
echo "ran with $*"
echo "and an error" >&2
exit "${1:-0}"
