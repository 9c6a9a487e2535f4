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
	p := NewPlan(s.members, s.options)
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
	return now, sent
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

func TestSimulate(t *testing.T) {
	blobs := workerBlobs()
	var total, largest int64
	for _, b := range blobs {
		total += b.Size
		largest = max(largest, b.Size)
	}
	floor := float64(total) / 125e6
	t.Log("largest", largest, total)
	for _, n := range []int{1, 2, 3, 8, 10, 30, 100, 300, 1000} {
		for _, k := range []int{1, 2, 4} {
			begin := time.Now()
			s := simulation{members: same(n, blobs), options: Options{Sends: k}, rate: 125e6, latency: 5 * time.Millisecond}
			seconds, sent := s.run(t)
			t.Logf("%4d sends %d: %6.1f s = %.2f x floor, control %.2f x S (%.2f s)", n, k, seconds, seconds/floor,
				float64(sent)/float64(total), time.Since(begin).Seconds())
		}
	}
}
