package files

import (
	"errors"
	"sync"
)

// inParallel runs do for all items, some at a time, and joins the errors.
func inParallel[T any](items []T, do func(T) error) error {
	const atOnce = 16
	var (
		wg    sync.WaitGroup
		slots = make(chan struct{}, atOnce)
		errs  = make([]error, len(items))
	)
	for i, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(item)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
