package expr

// Span is where the outermost operand of an expression begins and ends.
func Span(x *Expr) (pos, end int) {
	at := x.root.where()
	return at.pos, at.end
}
