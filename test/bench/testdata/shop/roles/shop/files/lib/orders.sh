# shellcheck shell=sh
# orders of the shop
orders() { echo "orders: $*"; }
