package relay

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// simulation carries out a plan with a clock of its own. All links have one rate, both ways; the control node's is
// shared by its sends.
type simulation struct {
	members []Member
	options Options
	rate    float64       // bytes per second
	latency time.Duration // that each transfer needs besides
	fault   func(Transfer) error
}

type arrival struct {
	at    float64
	began float64
	Transfer
}

type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// run returns the seconds until everything has arrived, and the bytes that the control node sent.
func (s simulation) run(tb testing.TB) (seconds float64, sent int64) {
	tb.Helper()
	_, seconds, sent = s.plan(tb)
	return seconds, sent
}

// plan returns the plan that was carried out, too.
func (s simulation) plan(tb testing.TB) (p *Plan, seconds float64, sent int64) {
	tb.Helper()
	p = NewPlan(s.members, s.options)
	sending, receiving := map[int]int{}, map[int]int{}
	sends := float64(max(1, p.slots))
	var queue arrivals
	now := 0.0
	for p.Remaining() > 0 {
		for _, t := range p.Next() {
			took := float64(t.Blob.Size)/s.rate + s.latency.Seconds()
			if t.FromControl() {
				took = sends*float64(t.Blob.Size)/s.rate + s.latency.Seconds()
				sent += t.Blob.Size
			} else if sending[t.From]++; sending[t.From] > 1 {
				tb.Fatalf("%s sends two blobs at a time", s.members[t.From].Name)
			}
			if receiving[t.To]++; receiving[t.To] > 1 {
				tb.Fatalf("%s receives two blobs at a time", s.members[t.To].Name)
			}
			heap.Push(&queue, arrival{now + took, now, t})
		}
		if len(queue) == 0 {
			tb.Fatalf("nothing moves, and %d blobs are missing", p.Remaining())
		}
		next := heap.Pop(&queue).(arrival)
		now = next.at
		sending[next.From]--
		receiving[next.To]--
		var err error
		if s.fault != nil {
			err = s.fault(next.Transfer)
		}
		p.Done(next.Transfer, time.Duration((now-next.began)*1e9), err)
	}
	return p, now, sent
}

// workerBlobs are the sizes that a worker gets: the binaries and the layers of its images, 440 MB in all.
func workerBlobs() []Blob {
	r := rand.New(rand.NewPCG(1, 1))
	var blobs []Blob
	var sum float64
	for range 40 {
		size := math.Exp(r.NormFloat64()*1.5 + 15)
		blobs = append(blobs, Blob{Size: int64(size)})
		sum += size
	}
	for i := range blobs {
		blobs[i].Digest = fmt.Sprintf("sha256:%064d", i)
		blobs[i].Size = int64(float64(blobs[i].Size) * 440e6 / sum)
	}
	return blobs
}

func same(n int, blobs []Blob) []Member {
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{Name: fmt.Sprintf("node%d", i), Blobs: blobs}
	}
	return members
}
