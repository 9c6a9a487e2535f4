package expr

import (
	"fmt"
	"time"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// method is a method of a string, list, dict or datetime. A method that changes its receiver returns a changed copy
// instead.
type method struct {
	call    func(recv any, a Args) (any, error)
	mutates func(recv any, a Args) (result, changed any, err error)
}

// Method is one row of a table of methods: name, parameters and function. It has either Do, or Mutate, which also
// returns the changed copy.
type Method struct {
	Name, Params string
	Do           func(recv any, p *Bound) (any, error)
	Mutate       func(recv any, p *Bound) (result, changed any, err error)
	UndefinedToo bool
}

func (s Method) method() method {
	sig := parseSignature(s.Name+"()", s.Params)
	if s.Mutate == nil {
		return method{call: func(recv any, a Args) (any, error) { return s.call(sig, recv, a) }}
	}
	return method{mutates: func(recv any, a Args) (any, any, error) {
		p, err := sig.bind(a)
		if err != nil {
			return nil, nil, err
		}
		v, changed, err := s.Mutate(recv, p)
		if p.Err != nil {
			err = p.Err
		}
		return v, changed, err
	}}
}

func (s Method) call(sig *signature, recv any, a Args) (any, error) {
	bind := bindDefined
	if s.UndefinedToo {
		bind = (*signature).bind
	}
	p, err := bind(sig, a)
	if err != nil {
		return nil, err
	}
	v, err := s.Do(recv, p)
	if p.Err != nil {
		err = p.Err
	}
	return v, err
}

// bindDefined is bind that rejects undefined arguments.
func bindDefined(sig *signature, a Args) (*Bound, error) {
	for _, v := range a.Positional {
		if u, ok := v.(*value.Undefined); ok {
			return nil, u
		}
	}
	return sig.bind(a)
}

// methodSet has the methods of each type.
type methodSet struct{ str, list, dict, datetime map[string]method }

// Methods are the methods of the types that have any.
type Methods struct{ Str, List, Dict, Datetime []Method }

func (m *methodSet) add(rows Methods) {
	for _, t := range []struct {
		table *map[string]method
		rows  []Method
	}{{&m.str, rows.Str}, {&m.list, rows.List}, {&m.dict, rows.Dict}, {&m.datetime, rows.Datetime}} {
		if *t.table == nil {
			*t.table = map[string]method{}
		}
		for _, row := range t.rows {
			(*t.table)[row.Name] = row.method()
		}
	}
}

func (m *methodSet) of(v any) map[string]method {
	switch v.(type) {
	case string:
		return m.str
	case []any:
		return m.list
	case *value.Dict:
		return m.dict
	case time.Time:
		return m.datetime
	}
	return nil
}

// method calls obj.name(args): a method of the type, or a callable member.
func (f *frame) method(n *callNode, target *attrNode) (any, error) {
	name, _ := target.key.(string)
	obj, err := f.eval(target.obj)
	if err != nil {
		return nil, err
	}
	if lazy, ok := obj.(value.Lazy); ok && name == "get" {
		return f.lazyGet(n, lazy)
	}
	if obj, err = f.forced(target.obj, obj); err != nil {
		return nil, err
	}
	if u, ok := obj.(*value.Undefined); ok {
		return nil, f.undefined(target.obj, u)
	}
	table := f.expr.env.methods.of(obj)
	m, ok := table[name]
	if !ok {
		return f.member(n, target, obj, table)
	}
	a, err := f.args(n.args)
	if err != nil {
		return nil, err
	}
	if m.mutates != nil {
		return f.mutate(n, target.obj, obj, m, a)
	}
	v, err := m.call(obj, a)
	if err != nil {
		return nil, f.calleeFailed(n, target.obj, obj, n.args, a, err)
	}
	return v, nil
}

// member calls a member of obj that is not a method of its type.
func (f *frame) member(n *callNode, target *attrNode, obj any, table map[string]method) (any, error) {
	callee, err := at(obj, target.key)
	if err != nil {
		return nil, f.fail(target, err)
	}
	u, ok := callee.(*value.Undefined)
	if !ok {
		return f.invoke(n, callee)
	}
	name, _ := target.key.(string)
	u.Hint = source.DidYouMean(name, sortedKeys(table))
	if _, err := f.expr.env.filter(name); err == nil && u.Hint == "" {
		u.Hint = fmt.Sprintf("'%s' is a filter: write x | %s", name, name)
	}
	return nil, f.fail(target, u)
}

// lazyGet is hostvars.get(key, default), without forcing the other values.
func (f *frame) lazyGet(n *callNode, lazy value.Lazy) (any, error) {
	a, err := f.args(n.args)
	if err != nil {
		return nil, err
	}
	p, err := bindDefined(parseSignature("get()", "key! default"), a)
	if err != nil {
		return nil, f.fail(n, err)
	}
	v, ok, err := lazy.At(p.Raw("key", nil))
	if err != nil {
		return f.undefinedBy(n, "", err)
	}
	if !ok {
		return p.Raw("default", nil), nil
	}
	return v, nil
}

// copies stores the results of mutating methods in a scope that cannot bind.
type copies struct {
	Scope
	bound Names
}

func (o *copies) Lookup(name string) (any, bool, error) {
	if v, ok := o.bound[name]; ok {
		return v, true, nil
	}
	return o.Scope.Lookup(name)
}

func (o *copies) Bind(name string, v any) { o.bound[name] = v }

func (f *frame) mutate(n *callNode, target node, obj any, m method, a Args) (any, error) {
	result, changed, err := m.mutates(obj, a)
	if err != nil {
		return nil, f.calleeFailed(n, target, obj, n.args, a, err)
	}
	return result, f.rebind(target, changed)
}

// rebind assigns changed to the path target: the name at the root of the path gets a changed copy of its value. A
// target that is not a path is a temporary value and needs nothing.
func (f *frame) rebind(target node, changed any) error {
	switch target := target.(type) {
	case *nameNode:
		f.bind(target.name, changed)
	case *attrNode:
		return f.rebindMember(target.obj, target.key, changed)
	case *indexNode:
		key, err := f.need(target.key)
		if err != nil {
			return err
		}
		return f.rebindMember(target.obj, key, changed)
	}
	return nil
}

func (f *frame) rebindMember(container node, key, changed any) error {
	obj, err := f.force(container)
	if err != nil {
		return err
	}
	switch obj := obj.(type) {
	case AttrSetter:
		if name, ok := key.(string); ok {
			obj.SetAttr(name, changed)
		}
	case *value.Dict:
		copied := obj.Copy()
		copied.Set(key, changed)
		return f.rebind(container, copied)
	case []any:
		i, _ := AsInt(key)
		if i < 0 {
			i += len(obj)
		}
		if i >= 0 && i < len(obj) {
			copied := append([]any(nil), obj...)
			copied[i] = changed
			return f.rebind(container, copied)
		}
	}
	return nil
}

func (f *frame) bind(name string, v any) {
	if s, ok := f.scope.(Binder); ok {
		s.Bind(name, v)
		return
	}
	f.scope = &copies{f.scope, Names{name: v}}
	f.call = nil // it refers to the old scope
}
