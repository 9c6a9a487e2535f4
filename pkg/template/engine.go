// Package template renders documents: text with {{ }}, {% %} and {# #} in it.
// It alone knows pongo2.
package template

import (
	"context"
	"errors"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
)

// Engine compiles templates and keeps them by source. It may be used by many goroutines at once.
type Engine struct{}

// Template is a compiled template.
type Template struct{}

var errStub = errors.New("stub")

// FileOptions change how a template file is read. The zero value is the
// template module's default: trim_blocks on, lstrip_blocks off.
type FileOptions struct {
	NoTrimBlocks             bool
	LStripBlocks             bool
	BlockStart, BlockEnd     string // default {% %}
	VariableStart, VarEnd    string // default {{ }}
	CommentStart, CommentEnd string // default {# #}
	Newline                  string // default "\n"
}

// New makes an engine that evaluates with env and reads files from tree.
func New(env *expr.Env, tree source.Tree) *Engine { return &Engine{} }

// Env is the expression environment of the engine.
func (e *Engine) Env() *expr.Env { return nil }

// String compiles a string of a playbook.
func (e *Engine) String(src string, at source.Pos) (*Template, error) { return nil, errStub }

// File compiles a .j2 file by its path; it is cached by path, options and modification time.
func (e *Engine) File(path string, o FileOptions) (*Template, error) { return nil, errStub }

// IsLiteral reports whether the template is plain text: Value returns it as it is.
func (t *Template) IsLiteral() bool { return false }

// Value renders a playbook string: a literal, the native value of a pure
// "{{ expr }}", text, or a container (rule 6).
func (t *Template) Value(ctx context.Context, s expr.Scope) (any, error) { return nil, errStub }

// Text renders to text.
func (t *Template) Text(ctx context.Context, s expr.Scope) (string, error) { return "", errStub }
