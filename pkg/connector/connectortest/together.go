package connectortest

import (
	"sync"
	"testing"
)

// Together runs subtests concurrently, regardless of the number of processors: most tests of
// hosts wait. It returns when all have finished.
func Together(t *testing.T, tests map[string]func(*testing.T)) {
	t.Helper()
	var all sync.WaitGroup
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
	all.Wait()
}
