# prices of the shop
prices() { echo "prices: $*"; }
