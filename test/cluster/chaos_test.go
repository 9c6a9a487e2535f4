package cluster

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// fromEnvironment is a number that the environment may set.
func fromEnvironment(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestKilledAndRunAgain kills kk at random moments of a create, $KK_CHAOS times
// each on bare hosts, and runs it again. $KK_CHAOS_SEED chooses the moments.
func TestKilledAndRunAgain(t *testing.T) {
	times := fromEnvironment(t, "KK_CHAOS", 1)
	seed := fromEnvironment(t, "KK_CHAOS_SEED", 1)
	t.Logf("KK_CHAOS=%d KK_CHAOS_SEED=%d", times, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	// A create of one node in the lab takes about this long.
	const whole = 60 * time.Second
	for i := range times {
		after := time.Duration(random.Int64N(int64(whole)))
		t.Run(strconv.Itoa(i), func(t *testing.T) { killAndRepeat(t, after) })
	}
}

func killAndRepeat(t *testing.T, after time.Duration) {
	c := newController(t, groups{"kube_control_plane": {1}, "kube_worker": {1}}, "")
	before := c.listings(t)
	ctx, cancel := context.WithTimeout(t.Context(), after) // ends in SIGKILL
	defer cancel()
	killed := c.try(ctx, t, "create", "cluster", "--yes")
	t.Logf("killed after %s; the last it said:\n%s", after, tail(killed.out, 5))
	c.run(t, "create", "cluster", "--yes")
	c.healthy(t)
	c.destroy(t, before)
}
