package expr

// Span returns the start and the end of the outermost operand of an expression.
func Span(x *Expr) (pos, end int) {
	at := x.root.where()
	return at.pos, at.end
}
