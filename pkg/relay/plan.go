package relay

import (
	"cmp"
	"slices"
	"time"
)

// control is the number of the control node among sources.
const control = -1

// Transfer is one blob on its path to one host.
type Transfer struct {
	Blob Blob
	From int // number of the source among the members; -1 is the control node
	To   int // number of the receiving member
	blob int
}

// FromControl reports whether the control node sends.
func (t Transfer) FromControl() bool { return t.From == control }

// Plan decides who gets what from whom. It has no clock and starts nothing: Next returns the transfers that should
// start, and Done takes in how one ended.
//
// A host receives one blob at a time, and sends one. The blob that the fewest hosts have goes first, and of those
// the largest. The control node sends what no host can send; while it has nothing of that kind, it helps, up to
// twice the bytes of all blobs. Between zones, a blob moves only if the receiving zone has no copy.
type Plan struct {
	nodes  []planNode
	blobs  []planBlob
	order  []int // of blobs, rarest first
	idle   set   // nodes that receive nothing
	free   set   // nodes that send nothing, and may send
	able   set   // nodes that may send
	direct set   // nodes that only the control node sends to
	far    []set // nodes outside of each zone

	options  Options
	slots    int // sends that the control node can begin
	late     int // sends to direct nodes that are under way
	moving   int // transfers under way
	helped   int64
	unique   int64 // bytes of all blobs
	turn     int   // where the search for a receiver begins
	rates    []float64
	problems []int // nodes that are given up
}

type planNode struct {
	name    string
	zone    int
	avoids  set // sources that failed for it
	accused set // receivers that it failed for, as a source
	served  int // blobs that others got from it
	got     int // blobs that it got from others
	tries   int // failed sends of the control node
	missing int // blobs
	gone    bool
}

type planBlob struct {
	Blob
	has, need, coming set // by node; what is coming is in need, too
	copies            int // nodes that have it or will have it, and may send
}

// NewPlan returns a plan in which no member has anything.
func NewPlan(members []Member, o Options) *Plan {
	n := len(members)
	p := &Plan{options: o, slots: cmp.Or(o.Sends, defaultSends), idle: newSet(n), free: newSet(n), able: newSet(n),
		direct: newSet(n)}
	numbers, zones := map[Blob]int{}, map[string]int{}
	for i, m := range members {
		zone, known := zones[m.Zone]
		if !known {
			zone = len(zones)
			zones[m.Zone] = zone
			p.far = append(p.far, newSet(n))
		}
		p.nodes = append(p.nodes, planNode{name: m.Name, zone: zone, avoids: newSet(n), accused: newSet(n)})
		p.idle.add(i)
		if o.Direct {
			p.direct.add(i)
		} else {
			p.able.add(i)
			p.free.add(i)
		}
		for _, b := range m.Blobs {
			number, known := numbers[b]
			if !known {
				number = len(p.blobs)
				numbers[b] = number
				p.order = append(p.order, number)
				p.blobs = append(p.blobs, planBlob{Blob: b, has: newSet(n), need: newSet(n), coming: newSet(n)})
				p.unique += b.Size
			}
			if need := p.blobs[number].need; !need.has(i) {
				need.add(i)
				p.nodes[i].missing++
			}
		}
	}
	for i := range p.nodes {
		for z, far := range p.far {
			if p.nodes[i].zone != z {
				far.add(i)
			}
		}
	}
	return p
}

const defaultSends = 2

// Has records that a member has a blob already.
func (p *Plan) Has(node int, b Blob) {
	for i := range p.blobs {
		if p.blobs[i].Blob == b {
			p.arrive(i, node)
			if p.able.has(node) {
				p.blobs[i].copies++
			}
		}
	}
}

// Remaining returns how many blobs members still miss. Members that are given up are not counted.
func (p *Plan) Remaining() int {
	left := 0
	for i := range p.nodes {
		if !p.nodes[i].gone {
			left += p.nodes[i].missing
		}
	}
	return left
}

// GivenUp returns the numbers of the members that are given up.
func (p *Plan) GivenUp() []int { return p.problems }

// Next returns the transfers that should start now. While blobs remain, there is a transfer under way afterwards.
func (p *Plan) Next() []Transfer {
	p.rank()
	out := p.seed(nil)
	for _, b := range p.order {
		out = p.exchange(out, b)
	}
	return p.help(p.serve(out))
}

// rank sorts the blobs.
func (p *Plan) rank() {
	slices.SortStableFunc(p.order, func(i, j int) int {
		a, b := &p.blobs[i], &p.blobs[j]
		return cmp.Or(cmp.Compare(a.copies, b.copies), cmp.Compare(b.Size, a.Size))
	})
}

// seed makes the control node send blobs that no host has.
func (p *Plan) seed(out []Transfer) []Transfer {
	for _, i := range p.order {
		if p.slots == 0 {
			break
		}
		b := &p.blobs[i]
		if b.copies > 0 {
			break // they are sorted
		}
		if to := b.need.first(p.turn, p.idle, b.coming, p.direct); to >= 0 {
			out = p.start(out, i, control, to)
		}
	}
	return out
}

// exchange makes hosts send a blob to each other.
func (p *Plan) exchange(out []Transfer, i int) []Transfer {
	b := &p.blobs[i]
	for from := b.has.first(0, p.free); from >= 0; {
		if b.need.first(p.turn, p.idle, b.coming, p.direct) < 0 {
			break // before every source is tried for nothing
		}
		if to := p.receiver(b, from); to >= 0 {
			out = p.start(out, i, from, to)
		}
		if from++; from >= len(p.nodes) {
			break
		}
		next := b.has.first(from, p.free)
		if next < from {
			break // it wrapped around
		}
		from = next
	}
	return out
}

// receiver returns the host that gets a blob from a source, or -1.
func (p *Plan) receiver(b *planBlob, from int) int {
	zone, accused := p.nodes[from].zone, p.nodes[from].accused
	if to := b.need.first(p.turn, p.idle, b.coming, p.direct, accused, p.far[zone]); to >= 0 {
		return to
	}
	for z, far := range p.far {
		if z == zone || p.covered(b, far) {
			continue
		}
		if to := b.need.first(p.turn, p.idle, b.coming, p.direct, accused, far); to >= 0 {
			return to
		}
	}
	return -1
}

// covered reports whether a zone, by what is outside of it, has a copy of a blob or will have it.
func (p *Plan) covered(b *planBlob, far set) bool {
	return b.has.first(0, p.able, far) >= 0 || b.coming.first(0, p.able, far) >= 0
}

// serve makes the control node send what no host can send to its receiver. Hosts that only the control node sends
// to leave one of its sends to the others.
func (p *Plan) serve(out []Transfer) []Transfer {
	for _, i := range p.order {
		b := &p.blobs[i]
		for to := b.need.first(0, p.idle, b.coming); to >= 0 && p.slots > 0; {
			if p.stranded(b, to) && (p.slots > 1 || p.late == 0 || p.options.Direct) {
				out = p.start(out, i, control, to)
			}
			if to++; to >= len(p.nodes) {
				break
			}
			next := b.need.first(to, p.idle, b.coming)
			if next < to {
				break
			}
			to = next
		}
	}
	return out
}

// stranded reports whether no host can send a blob to a receiver, now or later.
func (p *Plan) stranded(b *planBlob, to int) bool {
	if p.direct.has(to) {
		return true
	}
	return b.has.first(0, p.able, p.nodes[to].avoids) < 0 && b.coming.first(0, p.able) < 0
}

// help makes the control node send what hosts could send, too: it would do nothing otherwise. Where there are
// zones, it does not: every send of it may cross to another one.
func (p *Plan) help(out []Transfer) []Transfer {
	for _, i := range p.order {
		b := &p.blobs[i]
		if p.slots == 0 || len(p.far) > 1 {
			break
		}
		if p.helped+b.Size > 2*p.unique {
			continue
		}
		if to := b.need.first(p.turn, p.idle, b.coming); to >= 0 {
			p.helped += b.Size
			out = p.start(out, i, control, to)
		}
	}
	if p.moving > 0 {
		return out
	}
	for _, i := range p.order { // whatever the rules: nobody waits for nothing
		b := &p.blobs[i]
		if to := b.need.first(0, p.idle, b.coming); to >= 0 && p.slots > 0 {
			return p.start(out, i, control, to)
		}
	}
	return out
}

func (p *Plan) start(out []Transfer, blob, from, to int) []Transfer {
	b := &p.blobs[blob]
	b.coming.add(to)
	if p.able.has(to) {
		b.copies++
	}
	p.idle.remove(to)
	p.moving++
	if from == control {
		p.slots--
		if p.direct.has(to) {
			p.late++
		}
	} else {
		p.free.remove(from)
	}
	p.turn = (to + 1) % len(p.nodes)
	return append(out, Transfer{Blob: b.Blob, From: from, To: to, blob: blob})
}

// Done takes in how a transfer ended, and how long it took.
func (p *Plan) Done(t Transfer, took time.Duration, err error) {
	b := &p.blobs[t.blob]
	p.moving--
	b.coming.remove(t.To)
	if t.From == control {
		p.slots++
		if p.direct.has(t.To) {
			p.late--
		}
	} else if p.able.has(t.From) {
		p.free.add(t.From)
	}
	if !p.nodes[t.To].gone {
		p.idle.add(t.To)
	}
	fault := faultOf(err)
	if fault == NoFault {
		p.succeed(t, took)
		return
	}
	if p.able.has(t.To) {
		b.copies--
	}
	p.fail(t, fault, err)
}

func (p *Plan) succeed(t Transfer, took time.Duration) {
	p.arrive(t.blob, t.To)
	if t.From != control {
		p.nodes[t.From].served++
		p.nodes[t.To].got++
		if took > 0 && t.Blob.Size > 0 {
			p.rates = append(p.rates, float64(t.Blob.Size)/took.Seconds())
		}
	}
}

// arrive records that a host has a blob.
func (p *Plan) arrive(blob, node int) {
	b := &p.blobs[blob]
	if b.need.has(node) {
		b.need.remove(node)
		p.nodes[node].missing--
	}
	b.has.add(node)
}

// maxTries is how often the control node sends a blob to a host before it gives the host up.
const maxTries = 3

func (p *Plan) fail(t Transfer, fault Fault, err error) {
	to := &p.nodes[t.To]
	if to.gone {
		return
	}
	switch {
	case fault == Lost || fault == Failing:
		p.GiveUp(t.To, err)
	case t.From == control:
		if to.tries++; to.tries >= maxTries {
			p.GiveUp(t.To, err)
		}
	default:
		p.blame(t, fault, err)
	}
}

// blame avoids the pair of a transfer, and finds out which of both fails with others, too.
func (p *Plan) blame(t Transfer, fault Fault, err error) {
	from, to := &p.nodes[t.From], &p.nodes[t.To]
	to.avoids.add(t.From)
	from.accused.add(t.To)
	p.notify(Event{Kind: Avoided, Host: to.name, From: from.name, Blob: t.Blob, Cause: err.Error()})
	if from.gone {
		return
	}
	if fault == Wrong || fault == Refused {
		p.miss(t.blob, t.From)
	}
	if fault == Wrong || suspect(from.accused, from.served) {
		p.mute(t.From, err)
	}
	if suspect(to.avoids, to.got) && !p.direct.has(t.To) {
		p.direct.add(t.To)
		p.notify(Event{Kind: ServedDirectly, Host: to.name, Blob: t.Blob, Cause: err.Error()})
	}
}

// suspect reports whether a host failed with so many others, compared with its successes, that the fault is its own:
// everybody has a failure when the network is overloaded.
func suspect(others set, successes int) bool {
	failures := 0
	for i := range len(others) * 64 {
		if others.has(i) {
			failures++
		}
	}
	return failures >= 2 && 3*failures > successes
}

// miss records that a host does not have a blob that it was believed to have.
func (p *Plan) miss(blob, node int) {
	b := &p.blobs[blob]
	if !b.has.has(node) {
		return
	}
	b.has.remove(node)
	b.need.add(node)
	p.nodes[node].missing++
	if p.able.has(node) {
		b.copies--
	}
}

// mute makes nobody fetch from a host.
func (p *Plan) mute(node int, err error) {
	if !p.able.has(node) {
		return
	}
	p.disable(node)
	p.notify(Event{Kind: NoSource, Host: p.nodes[node].name, Cause: err.Error()})
}

func (p *Plan) disable(node int) {
	if !p.able.has(node) {
		return
	}
	p.able.remove(node)
	p.free.remove(node)
	for i := range p.blobs {
		if b := &p.blobs[i]; b.has.has(node) || b.coming.has(node) {
			b.copies--
		}
	}
}

// Direct records that a member reaches nobody, and is reached by the control node only.
func (p *Plan) Direct(node int) {
	p.disable(node)
	p.direct.add(node)
}

// GiveUp records that a member is lost.
func (p *Plan) GiveUp(node int, err error) {
	n := &p.nodes[node]
	if n.gone {
		return
	}
	p.disable(node)
	n.gone = true
	p.idle.remove(node)
	for i := range p.blobs {
		p.blobs[i].need.remove(node)
		p.blobs[i].has.remove(node)
	}
	p.problems = append(p.problems, node)
	p.notify(Event{Kind: GivenUp, Host: n.name, Cause: err.Error()})
}

func (p *Plan) notify(e Event) {
	if p.options.Notify != nil {
		p.options.Notify(e)
	}
}

// minRates is how many transfers must have ended before others are compared with them.
const minRates = 4

// Limit returns how long a transfer between hosts may take. 0 is no limit: too few have ended to compare with.
func (p *Plan) Limit(t Transfer) time.Duration {
	if t.From == control || len(p.rates) < minRates {
		return 0
	}
	recent := slices.Clone(p.rates[max(0, len(p.rates)-101):])
	slices.Sort(recent)
	usual := float64(t.Blob.Size) / recent[len(recent)/2]
	return cmp.Or(p.options.Patience, defaultPatience) + time.Duration(4*usual*float64(time.Second))
}

const defaultPatience = 30 * time.Second
