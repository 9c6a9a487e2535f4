package vars

import (
	"fmt"

	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// container is a list or mapping with templates inside.
type container struct {
	v    *View
	d    *template.Data
	name string
}

// At implements value.Lazy.
func (c *container) At(key any) (any, bool, error) {
	m, ok := c.d.Member(key)
	if !ok {
		if c.hasTemplatedKeys() {
			forced, err := c.Force()
			if err != nil {
				return nil, false, err
			}
			if dict, isDict := forced.(*value.Dict); isDict {
				val, ok := dict.Get(key)
				return val, ok, nil
			}
		}
		return nil, false, nil
	}
	if plain, static := m.Static(); static {
		return plain, true, nil
	}
	path := fmt.Sprintf("%s.%v", c.name, key)
	if m.IsContainer() {
		return &container{v: c.v, d: m, name: path}, true, nil
	}
	return c.v.expand(path, m)
}

func (c *container) hasTemplatedKeys() bool { return c.d.TemplatedKeys() }

// Force implements value.Lazy.
func (c *container) Force() (any, error) {
	if val, ok := c.v.memo[c.name]; ok {
		return val, nil
	}
	for l := c.v.chain; l != nil; l = l.parent {
		if l.name == c.name && l.host == c.v.host {
			return nil, c.v.cycle(c.name)
		}
	}
	val, err := c.v.evaluate(c.name, c.d)
	if err != nil {
		val, _, err = undefined(c.name, err)
		return val, err
	}
	c.v.remember(c.name, val)
	return val, nil
}
