package connector

import "context"

type noLogKey struct{}

// WithNoLog marks the commands of a task whose output must not be shown (no_log):
// command lines are then not logged.
func WithNoLog(ctx context.Context) context.Context { return context.WithValue(ctx, noLogKey{}, true) }

// IsNoLog reports whether WithNoLog marked the context.
func IsNoLog(ctx context.Context) bool { return ctx.Value(noLogKey{}) != nil }
