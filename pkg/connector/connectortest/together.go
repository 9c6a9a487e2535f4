package connectortest

import (
	"sync"
	"testing"
)

// Together runs subtests at the same time, however few processors there are:
// most tests of hosts wait. It returns when all have ended.
func Together(t *testing.T, tests map[string]func(*testing.T)) {
	t.Helper()
	var all sync.WaitGroup
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
	all.Wait()
}
