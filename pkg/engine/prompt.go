package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/expr"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// prompts asks for the vars_prompt of a play. It does not ask for variables that are set on the command line.
func (e *Engine) prompts(ctx context.Context, p *project.Play) ([]*vars.Layer, error) {
	r := &reader{ctx: ctx, v: e.playScope(ctx, &playState{play: p})}
	var out []*vars.Layer
	for _, q := range p.Prompts {
		name := q.Syntax.Name
		if slices.ContainsFunc(e.Extra, func(l *vars.Layer) bool { return slices.Contains(l.Names(), name) }) {
			continue
		}
		answer, typed, err := e.prompt(r, q)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.Syntax.At, err)
		}
		// A default was already evaluated; its result is not a template.
		isData := !typed || r.flag(q.Unsafe, "unsafe")
		out = append(out, vars.Templates("vars_prompt", value.NewDict(name, answer), e.Templates,
			func(string) source.Pos { return q.Syntax.At }, func([]string) bool { return isData }))
	}
	return out, r.err
}

// prompt asks for one variable; typed is false if the default is used.
func (e *Engine) prompt(r *reader, q *project.Prompt) (val any, typed bool, err error) {
	private := q.Private == nil || r.flag(q.Private, "private")
	confirm := r.flag(q.Confirm, "confirm")
	question := q.Syntax.Name
	if q.Text != nil {
		question = r.text(q.Text, "prompt")
	}
	def := r.value(q.Default, "default")
	switch {
	case def == nil:
	case private: // people keep passwords in defaults, and others can see the screen
		e.Redact.Add(value.Str(def))
		question += " [" + redact.Mask + "]"
	default:
		question += " [" + value.Str(def) + "]"
	}
	if r.err != nil {
		return nil, false, r.err
	}
	answer, err := e.answer(r.ctx, question+": ", !private, confirm)
	if err != nil {
		return nil, false, err
	}
	typed = answer != "" || def == nil
	switch {
	case !typed:
		answer = value.Str(def)
	case private:
		e.Redact.Add(answer)
	}
	e.hideNamed(q.Syntax.Name, answer)
	if q.Encrypt == nil {
		return answer, typed, nil
	}
	val, err = e.hashed(r, q, answer)
	return val, typed, err
}

// answer asks the user, twice if the input requires confirmation.
func (e *Engine) answer(ctx context.Context, question string, echo, confirm bool) (string, error) {
	ask := e.Ask
	if ask == nil {
		ask = func(context.Context, string, bool) (string, bool, error) { return "", false, nil }
	}
	notice := ""
	for {
		first, ok, err := ask(ctx, notice+question, echo)
		if err != nil {
			return "", err
		}
		if !ok {
			e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "Not prompting as we are not in interactive mode")})
			return "", nil
		}
		if !confirm {
			return first, nil
		}
		second, _, err := ask(ctx, "confirm "+question, echo)
		if err != nil || first == second {
			return first, err
		}
		notice = "***** VALUES ENTERED DO NOT MATCH ****\n"
	}
}

// hashed hashes an answer with the scheme of encrypt.
func (e *Engine) hashed(r *reader, q *project.Prompt, answer string) (any, error) {
	names := expr.Names{"answer": answer, "scheme": strings.TrimSuffix(r.text(q.Encrypt, "encrypt"), "_crypt")}
	call := "answer | password_hash(scheme"
	for name, d := range map[string]*template.Data{"salt": q.Salt, "salt_size": q.Size} {
		if v := r.value(d, name); v != nil {
			names[name] = v
			call += ", " + name + "=" + name
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	x, err := e.Templates.Env().Compile(call+")", q.Syntax.At, expr.Escaped)
	if err != nil {
		return nil, err
	}
	return x.Eval(r.ctx, names)
}
