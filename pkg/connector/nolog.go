package connector

import "context"

type noLogKey struct{}

// WithNoLog marks the commands of a task whose output is not to be shown
// (no_log): whoever logs command lines leaves these out.
func WithNoLog(ctx context.Context) context.Context { return context.WithValue(ctx, noLogKey{}, true) }

// IsNoLog reports whether WithNoLog marked the context.
func IsNoLog(ctx context.Context) bool { return ctx.Value(noLogKey{}) != nil }
