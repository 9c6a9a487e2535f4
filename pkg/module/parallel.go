package module

import (
	"sync"

	"kubekey/pkg/connector"
)

// Parallel calls work for 0 to count-1, with at most limit calls at once, and waits for all. The first panic is
// passed on to the caller's goroutine, where it only fails one task on one host.
func Parallel(count, limit int, work func(i int)) {
	slots := make(chan struct{}, limit)
	panics := make(chan *connector.PanicError, count)
	var wait sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panics <- connector.NewPanicError(p)
				}
				<-slots
			}()
			work(i)
		})
	}
	wait.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
	}
}
