# shellcheck shell=sh
# prices of the shop
prices() { echo "prices: $*"; }
