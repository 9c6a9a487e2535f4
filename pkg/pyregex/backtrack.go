package pyregex

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// step matches the text from a position to the end of the pattern. After a failure the machine is unchanged.
type step func(m *machine, at int) bool

// machine is the state of a single search.
type machine struct {
	text     string
	groups   Match
	opened   []int  // start positions of groups that are not closed yet
	loops    []turn // of the loops that have been entered
	end      int    // end position of the part that has matched
	refused  int    // position where an empty match is not allowed; -1 for none
	whole    bool   // the match must reach the end of the text
	steps    int
	depth    int
	deadline time.Time
	err      error
}

// turn counts the iterations of a loop; last is the position where the last one began.
type turn struct{ count, last int }

const (
	stepsBetweenLooks = 1 << 12 // between checks of the deadline
	maxDepth          = 1 << 19 // limit of nested calls
)

var (
	errTime  = errors.New("the search takes too long: a pattern without lookaround and back references is faster")
	errDepth = errors.New("the search goes too deep: a pattern without lookaround and back references needs less memory")
)

// over counts a step, and reports whether the search has to stop.
func (m *machine) over() bool {
	if m.steps++; m.steps%stepsBetweenLooks == 0 && m.err == nil && time.Now().After(m.deadline) {
		m.err = errTime
	}
	return m.err != nil
}

// search returns the first match from a position. With advance, an empty match at that position does not count.
func (re *Regexp) search(text string, from int, advance bool) (Match, error) {
	m := &machine{
		text: text, groups: make(Match, 2*re.Groups()+2), opened: make([]int, re.Groups()+1), loops: make([]turn, re.loops),
		refused: -1, whole: re.flags&Whole != 0, deadline: time.Now().Add(re.limit),
	}
	if advance {
		m.refused = from
	}
	for at := from; at <= len(text) && !m.over(); at += max(1, width(text, at)) {
		i := strings.Index(text[at:], re.prefix)
		if i < 0 || at+i > 0 && re.flags&(AtStart|Whole) != 0 {
			break
		}
		at += i
		for g := range m.groups {
			m.groups[g] = -1
		}
		if re.run(m, at) {
			m.groups[0], m.groups[1] = at, m.end
			return m.groups, nil
		}
	}
	return nil, m.err
}

func width(text string, at int) int {
	_, size := utf8.DecodeRuneInString(text[at:])
	return size
}

// before returns the position n characters before another, or -1 if there are fewer characters.
func before(text string, at, n int) int {
	for ; n > 0; n-- {
		if at == 0 {
			return -1
		}
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}

// found is the last step of the pattern.
func found(m *machine, at int) bool {
	m.end = at
	return at != m.refused && (!m.whole || at == len(m.text))
}

// partFound is the last step of a part that is matched on its own.
func partFound(m *machine, at int) bool {
	m.end = at
	return true
}

// compiler converts nodes to steps, from the last to the first.
type compiler struct{ loops int }

func (c *compiler) compile(n *node, next step) step {
	switch n.op {
	case opChar, opSet:
		return one(n, next)
	case opAt:
		return place(n, next)
	case opSeq:
		return c.sequence(n, next)
	case opBranch:
		return c.branch(n, next)
	case opGroup:
		return c.group(n, next)
	case opRef:
		return reference(n, next)
	case opIf:
		return c.condition(n, next)
	case opRepeat:
		if body := n.subs[0]; body.least > 0 && body.least == body.top && !body.captures {
			return c.repeatFixed(n, next)
		}
		return c.repeat(n, next)
	case opLook:
		return c.look(n, next)
	}
	return c.atomic(n, next)
}

// sequence joins adjacent characters to texts.
func (c *compiler) sequence(n *node, next step) step {
	for i := len(n.subs) - 1; i >= 0; {
		text := ""
		for ; i >= 0 && plain(n.subs[i]); i-- {
			text = string(n.subs[i].char) + text
		}
		if text != "" {
			next = literal(text, next)
			continue
		}
		next = c.compile(n.subs[i], next)
		i--
	}
	return next
}

// plain reports whether a node is a character that matches only itself.
func plain(n *node) bool {
	return n.op == opChar && n.flags&IgnoreCase == 0 && utf8.ValidRune(n.char) && n.char != utf8.RuneError
}

// prefix returns a text with which all matches begin, as far as it is easy to determine.
func prefix(n *node) string {
	text := ""
	if n.op == opSeq {
		for _, sub := range n.subs {
			if !plain(sub) {
				break
			}
			text += string(sub.char)
		}
	}
	return text
}

func literal(text string, next step) step {
	return func(m *machine, at int) bool {
		return strings.HasPrefix(m.text[at:], text) && next(m, at+len(text))
	}
}

func one(n *node, next step) step {
	return func(m *machine, at int) bool {
		if at == len(m.text) {
			return false
		}
		r, size := utf8.DecodeRuneInString(m.text[at:])
		if n.op == opChar && !same(n.char, r, n.flags) || n.op == opSet && !n.set.has(r, n.flags) {
			return false
		}
		return next(m, at+size)
	}
}

func place(n *node, next step) step {
	return func(m *machine, at int) bool { return isAt(n, m.text, at) && next(m, at) }
}

func isAt(n *node, text string, at int) bool {
	lines := n.flags&Multiline != 0
	switch n.char {
	case '^':
		return at == 0 || lines && text[at-1] == '\n'
	case 'A':
		return at == 0
	case '$':
		return at == len(text) || text[at] == '\n' && (lines || at+1 == len(text))
	case 'Z':
		return at == len(text)
	}
	if text == "" {
		return false
	}
	left, leftSize := utf8.DecodeLastRuneInString(text[:at])
	right, rightSize := utf8.DecodeRuneInString(text[at:])
	edge := (leftSize > 0 && isKind(left, 'w', n.flags)) != (rightSize > 0 && isKind(right, 'w', n.flags))
	return edge == (n.char == 'b')
}

func (c *compiler) branch(n *node, next step) step {
	var all []step
	for _, sub := range n.subs {
		all = append(all, c.compile(sub, next))
	}
	return func(m *machine, at int) bool {
		for _, alternative := range all {
			if m.over() {
				return false
			}
			if alternative(m, at) {
				return true
			}
		}
		return false
	}
}

func (c *compiler) group(n *node, next step) step {
	g := n.group
	inner := c.compile(n.subs[0], func(m *machine, at int) bool {
		from, to := m.groups[2*g], m.groups[2*g+1]
		m.groups[2*g], m.groups[2*g+1] = m.opened[g], at
		if next(m, at) {
			return true
		}
		m.groups[2*g], m.groups[2*g+1] = from, to
		return false
	})
	return func(m *machine, at int) bool {
		was := m.opened[g]
		m.opened[g] = at
		if inner(m, at) {
			return true
		}
		m.opened[g] = was
		return false
	}
}

func reference(n *node, next step) step {
	return func(m *machine, at int) bool {
		if !m.groups.Has(n.group) {
			return false
		}
		for _, want := range m.groups.Text(m.text, n.group) {
			r, size := utf8.DecodeRuneInString(m.text[at:])
			if size == 0 || !same(want, r, n.flags) {
				return false
			}
			at += size
		}
		return next(m, at)
	}
}

func (c *compiler) condition(n *node, next step) step {
	yes, no := c.compile(n.subs[0], next), next
	if len(n.subs) > 1 {
		no = c.compile(n.subs[1], next)
	}
	return func(m *machine, at int) bool {
		if m.groups.Has(n.group) {
			return yes(m, at)
		}
		return no(m, at)
	}
}

// repeatFixed repeats a part that has a fixed length and only one possible match at a position. Only the number of
// repetitions needs backtracking.
func (c *compiler) repeatFixed(n *node, next step) step {
	body, size := c.compile(n.subs[0], partFound), n.subs[0].least
	greedy := func(m *machine, at int) bool {
		count := 0
		for ; count < n.max && !m.over() && body(m, at); count++ {
			at = m.end
		}
		for ; count >= n.min && !m.over(); count-- {
			if next(m, at) {
				return true
			}
			if count > 0 {
				at = before(m.text, at, size)
			}
		}
		return false
	}
	if !n.lazy {
		return greedy
	}
	return func(m *machine, at int) bool {
		for count := 0; !m.over(); count++ {
			if count >= n.min && next(m, at) {
				return true
			}
			if count == n.max || !body(m, at) {
				break
			}
			at = m.end
		}
		return false
	}
}

// repeat repeats a part that can match in several ways.
func (c *compiler) repeat(n *node, next step) step {
	id := c.loops
	c.loops++
	var body step
	again := func(m *machine, at int) bool {
		was := m.loops[id]
		if was.count < n.min {
			m.loops[id].count++
			if body(m, at) {
				return true
			}
			m.loops[id] = was
			return false
		}
		if n.lazy && next(m, at) {
			return true
		}
		if was.count < n.max && at != was.last && !m.over() {
			m.loops[id] = turn{was.count + 1, at}
			if body(m, at) {
				return true
			}
			m.loops[id] = was
		}
		return !n.lazy && next(m, at)
	}
	body = c.compile(n.subs[0], func(m *machine, at int) bool {
		if m.depth += n.nodes; m.depth > maxDepth && m.err == nil {
			m.err = errDepth
		}
		ok := !m.over() && again(m, at)
		m.depth -= n.nodes
		return ok
	})
	return func(m *machine, at int) bool {
		was := m.loops[id]
		m.loops[id] = turn{0, -1}
		ok := again(m, at)
		m.loops[id] = was
		return ok
	}
}

func (c *compiler) look(n *node, next step) step {
	part := c.compile(n.subs[0], partFound)
	return func(m *machine, at int) bool {
		from := at
		if n.back {
			from = before(m.text, at, n.subs[0].least)
		}
		groups := m.kept(n)
		if ok := from >= 0 && part(m, from); ok == n.not {
			m.restore(groups)
			return false
		}
		if next(m, at) {
			return true
		}
		m.restore(groups)
		return false
	}
}

func (c *compiler) atomic(n *node, next step) step {
	part := c.compile(n.subs[0], partFound)
	return func(m *machine, at int) bool {
		groups := m.kept(n)
		if part(m, at) && next(m, m.end) {
			return true
		}
		m.restore(groups)
		return false
	}
}

// kept returns a copy of the groups if the node changes groups, nil otherwise.
func (m *machine) kept(n *node) Match {
	if !n.captures {
		return nil
	}
	return slices.Clone(m.groups)
}

func (m *machine) restore(groups Match) { copy(m.groups, groups) }
