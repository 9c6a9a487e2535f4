package relay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// gigabit is a link's bytes per second.
const gigabit = 125e6

// TestTimeAndBytes compares simulated distributions with the time that one host's link takes for its bytes, and with
// the goals of the figures: they would fail long before a user noticed.
func TestTimeAndBytes(t *testing.T) {
	blobs := workerBlobs()
	var size float64
	for _, b := range blobs {
		size += float64(b.Size)
	}
	for _, c := range []struct {
		hosts        int
		floors, sent float64
	}{{10, 3, 4}, {100, 4, 4}, {1000, 5, 4}} {
		s := simulation{members: same(c.hosts, blobs), rate: gigabit, latency: 5 * time.Millisecond}
		seconds, sent := s.run(t)
		floors, copies := seconds/(size/gigabit), float64(sent)/size
		t.Logf("%4d hosts: %.1f s, which is %.2f times the floor; the control node sent %.2f times one host's bytes",
			c.hosts, seconds, floors, copies)
		if floors > c.floors || copies > c.sent {
			t.Errorf("the goals are %.0f and %.0f", c.floors, c.sent)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, hosts := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			blobs := workerBlobs()
			var size float64
			for _, blob := range blobs {
				size += float64(blob.Size)
			}
			s := simulation{members: same(hosts, blobs), rate: gigabit, latency: 5 * time.Millisecond}
			var seconds float64
			var sent int64
			for b.Loop() {
				seconds, sent = s.run(b)
			}
			b.ReportMetric(seconds/(size/gigabit), "floors")
			b.ReportMetric(float64(sent)/size, "sent/S")
		})
	}
}

// TestDirect checks that nothing but the control node sends.
func TestDirect(t *testing.T) {
	blobs := workerBlobs()
	s := simulation{members: same(5, blobs), options: Options{Direct: true}, rate: gigabit}
	_, sent := s.run(t)
	var size int64
	for _, b := range blobs {
		size += b.Size
	}
	if sent != 5*size {
		t.Errorf("it sent %d bytes instead of %d", sent, 5*size)
	}
}

// TestHelpIsBounded checks that the control node sends a blob and no more than two further copies.
func TestHelpIsBounded(t *testing.T) {
	s := simulation{members: same(500, []Blob{{"sha256:1", 1e6}}), rate: gigabit}
	if _, sent := s.run(t); sent > 3e6 {
		t.Errorf("it sent %d bytes", sent)
	}
}

// TestZones checks that one copy of each blob comes to a zone.
func TestZones(t *testing.T) {
	blobs := workerBlobs()
	members := same(30, blobs)
	zone := func(i int) string { return fmt.Sprintf("zone%d", i%3) }
	for i := range members {
		members[i].Zone = zone(i)
	}
	crossed := map[string]int{}
	s := simulation{members: members, rate: gigabit, fault: func(x Transfer) error {
		if x.FromControl() || zone(x.From) != zone(x.To) {
			crossed[x.Blob.Digest+" to "+zone(x.To)]++
		}
		return nil
	}}
	s.run(t)
	if len(crossed) != 3*len(blobs) {
		t.Errorf("%d blobs came to a zone, of %d", len(crossed), 3*len(blobs))
	}
	for what, n := range crossed {
		if n != 1 {
			t.Errorf("%s: %d copies", what, n)
		}
	}
}

// TestFaults makes hosts fail, and checks that all others get everything, and what is reported.
func TestFaults(t *testing.T) {
	damaged := 0
	fails := func(f Fault) error { return &TransferError{f, string(f)} }
	for _, c := range []struct {
		name    string
		fault   func(Transfer) error
		want    []string // events, without their causes
		givenUp []int
	}{
		{"unreachable by others", func(x Transfer) error {
			if x.From == 3 {
				return fails(Unreachable)
			}
			return nil
		}, []string{"no host fetches from node3"}, nil},
		{"reaches no other", func(x Transfer) error {
			if x.To == 3 && !x.FromControl() {
				return fails(Unreachable)
			}
			return nil
		}, []string{"node3 is served by the control node"}, nil},
		{"slow", func(x Transfer) error {
			if x.To == 3 && !x.FromControl() {
				return fails(Slow)
			}
			return nil
		}, []string{"node3 is served by the control node"}, nil},
		{"sends wrong bytes", func(x Transfer) error {
			if x.From == 3 {
				return fails(Wrong)
			}
			return nil
		}, []string{"no host fetches from node3"}, nil},
		{"full disk", func(x Transfer) error {
			if x.To == 3 {
				return errors.New("no space left on device")
			}
			return nil
		}, []string{"node3 is given up"}, []int{3}},
		{"lost", func(x Transfer) error {
			if x.To == 3 {
				return fails(Lost)
			}
			return nil
		}, []string{"node3 is given up"}, []int{3}},
		{"damaged between the control node and a host", func(x Transfer) error {
			if x.To == 3 && x.FromControl() && damaged < maxTries-1 {
				damaged++
				return fails(Wrong)
			}
			return nil
		}, nil, nil},
		{"nobody reaches anybody", func(x Transfer) error {
			if !x.FromControl() {
				return fails(Unreachable)
			}
			return nil
		}, []string{"is served by the control node", "no host fetches from"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []string
			s := simulation{members: same(20, workerBlobs()), rate: gigabit, fault: c.fault,
				options: Options{Notify: func(e Event) { events = append(events, e.String()) }}}
			p, _, _ := s.plan(t)
			for _, want := range c.want {
				if !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, want) }) {
					t.Errorf("%q was not reported: %q", want, events)
				}
			}
			if c.want == nil && len(p.GivenUp()) == 0 && slices.ContainsFunc(events, func(e string) bool {
				return !strings.Contains(e, "anymore")
			}) {
				t.Errorf("reported: %q", events)
			}
			if !slices.Equal(p.GivenUp(), c.givenUp) {
				t.Errorf("given up: %v instead of %v", p.GivenUp(), c.givenUp)
			}
		})
	}
}

// TestWrongBytesAreReplaced checks that a host that sent wrong bytes gets the blob again.
func TestWrongBytesAreReplaced(t *testing.T) {
	blobs := workerBlobs()[:3]
	var bad *Transfer
	again := false
	s := simulation{members: same(4, blobs), rate: gigabit, fault: func(x Transfer) error {
		if bad == nil && !x.FromControl() {
			bad = &x
			return &TransferError{Wrong, "wrong"}
		}
		if bad != nil && x.To == bad.From && x.Blob == bad.Blob {
			again = true
		}
		return nil
	}}
	s.run(t)
	if bad == nil || !again {
		t.Errorf("after %+v the source did not get the blob again", bad)
	}
}

// TestLimit checks that a transfer is compared with others once some have ended.
func TestLimit(t *testing.T) {
	blob := Blob{"sha256:1", 1000}
	p := NewPlan(same(3, []Blob{blob}), Options{Patience: time.Second})
	x := Transfer{Blob: blob, From: 0, To: 1}
	if got := p.Limit(x); got != 0 {
		t.Errorf("a limit of %s before anything has ended", got)
	}
	p.rates = []float64{1, 1000, 1000, 1000, 1e9}
	if got := p.Limit(x); got != 5*time.Second {
		t.Errorf("a limit of %s", got)
	}
	x.From = control
	if got := p.Limit(x); got != 0 {
		t.Errorf("a limit of %s for the control node", got)
	}
}

func TestSet(t *testing.T) {
	s, all := newSet(200), newSet(200)
	for i := range 200 {
		all.add(i)
	}
	for _, i := range []int{3, 64, 199} {
		s.add(i)
	}
	for from, want := range map[int]int{0: 3, 3: 3, 4: 64, 64: 64, 65: 199, 199: 199} {
		if got := s.first(from, all); got != want {
			t.Errorf("from %d: %d instead of %d", from, got, want)
		}
	}
	without := newSet(200)
	without.add(199)
	if got := s.first(65, all, without); got != 3 {
		t.Errorf("it is %d behind the last", got)
	}
	if got := s.first(5, newSet(200)); got != -1 || newSet(0).first(0, nil) != -1 {
		t.Errorf("found %d in nothing", got)
	}
}
