package lab

import (
	"os"
	"testing"
	"time"
)

func TestSealingMovesNoClock(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the kernel lets nobody else tell it the timezone")
	}
	begin := time.Now()
	if err := sealClock(); err != nil {
		t.Fatal(err)
	}
	// The first is by the clock on the wall, the second by the one that nobody sets.
	if wall, passed := time.Now().Round(0).Sub(begin.Round(0)), time.Since(begin); (wall - passed).Abs() > time.Minute {
		t.Errorf("the clock moved by %s", wall-passed)
	}
}
