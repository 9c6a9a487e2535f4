// Package program has the program that hosts run for package relay, where kk was built with it.
package program

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
)

// `make relay` writes the programs there. Without it the folder has a README only, and kk distributes files itself.
//
//go:embed embedded
var embedded embed.FS

// Program is the program for one architecture.
type Program struct {
	Gzip   []byte
	SHA256 string // of Gzip, hexadecimal
}

// For returns the program for an architecture as Go names it (amd64); ok is false if kk was built without it.
func For(arch string) (p Program, ok bool) {
	data, err := embedded.ReadFile("embedded/kk-relay-linux-" + arch + ".gz")
	if err != nil {
		return Program{}, false
	}
	sum := sha256.Sum256(data)
	return Program{data, hex.EncodeToString(sum[:])}, true
}
