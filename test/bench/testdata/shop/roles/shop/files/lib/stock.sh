# shellcheck shell=sh
# stock of the shop
stock() { echo "stock: $*"; }
