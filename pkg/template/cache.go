package template

import "sync"

// cache keeps recently used entries, at most twice `limit` of them. A full young half becomes the old half, and the
// entries of the previous old half are dropped. A hit in the young half takes a read lock only.
type cache[K comparable, V any] struct {
	mu         sync.RWMutex
	limit      int
	young, old map[K]V
}

func newCache[K comparable, V any](limit int) *cache[K, V] {
	return &cache[K, V]{limit: limit, young: map[K]V{}}
}

func (c *cache[K, V]) get(k K) (V, bool) {
	c.mu.RLock()
	v, ok := c.young[k]
	if ok {
		c.mu.RUnlock()
		return v, true
	}
	v, ok = c.old[k]
	c.mu.RUnlock()
	if ok {
		c.put(k, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.limit {
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[k] = v
}
