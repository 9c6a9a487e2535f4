package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// node is a host with a list of tasks.
type node struct {
	name  string
	tasks []string
	at    int
}

func (n *node) Next() string {
	if n.at == len(n.tasks) {
		return ""
	}
	return n.tasks[n.at]
}

func (n *node) Compare(other *node) int { return n.at - other.at }

// nodes returns hosts a, b, c, ... with a list of tasks each.
func nodes(tasks ...string) []*node {
	var out []*node
	for i, list := range tasks {
		out = append(out, &node{name: string(rune('a' + i)), tasks: strings.Fields(list)})
	}
	return out
}

// driver records its calls.
type driver struct {
	log     []string
	running []*node
	limit   int    // of hosts at a task
	passes  string // a task that is skipped
	fails   string // a task that ends the run
	most    int    // maximum number of hosts that ran at a time
}

var errFails = errors.New("the task fails")

func (d *driver) Step(_ context.Context, task string, hosts []*node) error {
	var names []string
	for _, n := range hosts {
		names = append(names, n.name)
		n.at++
	}
	d.log = append(d.log, task+":"+strings.Join(names, ","))
	if task == d.fails {
		return errFails
	}
	return nil
}

func (d *driver) Limit(context.Context, string, *node) int { return d.limit }

func (d *driver) Start(_ context.Context, task string, n *node) (bool, error) {
	if task == d.passes {
		n.at++
		return false, nil
	}
	d.log = append(d.log, n.name+task)
	d.running = append(d.running, n)
	d.most = max(d.most, len(d.running))
	return true, nil
}

// Await ends the task that was started first.
func (d *driver) Await(ctx context.Context) (string, *node, error) {
	n := d.running[0]
	d.running = d.running[1:]
	task := n.Next()
	if ctx.Err() != nil {
		return task, n, nil
	}
	n.at++
	if task == d.fails {
		return task, n, errFails
	}
	return task, n, nil
}

func TestLinearRunsTheHostsThatAreFurthestBehind(t *testing.T) {
	for _, c := range []struct {
		hosts []*node
		fails string
		want  string
	}{
		{nodes("1 2", "1 2"), "", "1:a,b 2:a,b"},
		{nodes("1 2", "x 2"), "", "1:a x:b 2:a,b"},
		{nodes("1 2 3", "1"), "", "1:a,b 2:a 3:a"},
		{nodes("1 2", "1 2"), "1", "1:a,b"},
		{nodes("", ""), "", ""},
		{nil, "", ""},
	} {
		d := &driver{fails: c.fails}
		err := Linear[*node, string](t.Context(), c.hosts, d)
		if got := strings.Join(d.log, " "); got != c.want || (err != nil) != (c.fails != "") {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}

func TestFreeStartsWhatItMay(t *testing.T) {
	for _, c := range []struct {
		name  string
		forks Forks
		d     driver
		hosts []*node
		want  string
	}{
		{"all at once", Forks{Most: 5}, driver{}, nodes("1 2", "1 2"), "a1 b1 a2 b2"},
		{"one fork", Forks{Most: 1}, driver{}, nodes("1 2", "1 2"), "a1 a2 b1 b2"},
		{"two forks", Forks{Most: 2}, driver{}, nodes("1 2", "1", "1"), "a1 b1 a2 c1"},
		{"pinned", Forks{Most: 2, Pinned: true}, driver{}, nodes("1 2 3", "1", "1 2", "1"), "a1 b1 a2 c1 a3 c2 d1"},
		{"limit", Forks{Most: 5}, driver{limit: 1}, nodes("1 2", "1"), "a1 a2 b1"},
		{"passes", Forks{Most: 5}, driver{passes: "1"}, nodes("1 2", "1 2"), "a2 b2"},
	} {
		d := c.d
		err := Free[*node, string](t.Context(), c.hosts, c.forks, &d)
		if got := strings.Join(d.log, " "); got != c.want || err != nil || d.most > c.forks.Most {
			t.Errorf("%s: %s, %v, %d at a time, want %s", c.name, got, err, d.most, c.want)
		}
	}
}

func TestFreeLeavesNothingRunning(t *testing.T) {
	d := &driver{fails: "1"}
	hosts := nodes("1 2", "1 2", "x 2")
	if err := Free[*node, string](t.Context(), hosts, Forks{Most: 5}, d); !errors.Is(err, errFails) {
		t.Error(err)
	}
	if len(d.running) > 0 || strings.Contains(fmt.Sprint(d.log), "2") {
		t.Errorf("after an error %d tasks run, and these began: %v", len(d.running), d.log)
	}
	if hosts[1].at != 0 || hosts[2].at != 0 {
		t.Error("what ended after the error had an effect")
	}
}

func TestBatches(t *testing.T) {
	hosts := []string{"a", "b", "c", "d", "e"}
	for _, c := range []struct {
		sizes []int
		want  string
	}{
		{nil, "[[a b c d e]]"}, {[]int{2}, "[[a b] [c d] [e]]"}, {[]int{1, 3}, "[[a] [b c d] [e]]"},
		{[]int{0}, "[[a b c d e]]"}, {[]int{9}, "[[a b c d e]]"}, {[]int{1, 0}, "[[a] [b c d e]]"},
	} {
		if got := fmt.Sprint(Batches(hosts, c.sizes)); got != c.want {
			t.Errorf("%v: %s, want %s", c.sizes, got, c.want)
		}
	}
}

func TestOrder(t *testing.T) {
	for order, want := range map[string]string{
		"": "b c a", "inventory": "b c a", "sorted": "a b c", "reverse_sorted": "c b a", "reverse_inventory": "a c b",
	} {
		if got := strings.Join(Order([]string{"b", "c", "a"}, order, "seed"), " "); got != want {
			t.Errorf("%s: %s, want %s", order, got, want)
		}
	}
	many := strings.Fields("a b c d e f g h i j k l")
	one := Order(slices.Clone(many), "shuffle", "run 1")
	again, other := Order(slices.Clone(many), "shuffle", "run 1"), Order(slices.Clone(many), "shuffle", "run 2")
	if !slices.Equal(one, again) || slices.Equal(one, other) || slices.Equal(one, many) {
		t.Errorf("shuffled as %v, %v, and with another seed %v", one, again, other)
	}
}
