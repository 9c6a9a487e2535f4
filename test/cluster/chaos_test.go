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

// moments are those at which kk is killed.
type moments struct {
	times  int // that TestKilledAndRunAgain kills it
	random *rand.Rand
}

// chaos reads $KK_CHAOS, the number of times, and $KK_CHAOS_SEED, which chooses the moments.
func chaos(t *testing.T) moments {
	t.Helper()
	times, seed := fromEnvironment(t, "KK_CHAOS", 0), fromEnvironment(t, "KK_CHAOS_SEED", 1)
	t.Logf("KK_CHAOS=%d KK_CHAOS_SEED=%d", times, seed)
	return moments{times, rand.New(rand.NewPCG(uint64(seed), 0))}
}

// moment is after the start of a create: one of a single node takes about a minute in the lab.
func (m moments) moment() time.Duration { return time.Duration(m.random.Int64N(int64(time.Minute))) }

// TestKilledAndRunAgain kills kk at random moments of a create, each on new hosts,
// and runs it again. TestAllInOne does so once.
func TestKilledAndRunAgain(t *testing.T) {
	m := chaos(t)
	if m.times == 0 {
		t.Skip("make e2e-chaos runs it many times; TestAllInOne begins with one")
	}
	for i := range m.times {
		after := m.moment()
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			c := newController(t, groups{"kube_control_plane": {1}, "kube_worker": {1}}, "")
			before := c.listings(t)
			c.kill(t, after)
			c.run(t, "create", "cluster", "--yes")
			c.healthy(t)
			c.destroy(t, before)
		})
	}
}

// kill ends a create with SIGKILL some time after its start.
func (c *controller) kill(t *testing.T, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	killed := c.try(ctx, t, "create", "cluster", "--yes")
	t.Logf("killed after %s; the last it said:\n%s", after, tail(killed.out, 5))
}
