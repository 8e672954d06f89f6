package files

import (
	"errors"
	"sync"
)

// forEach runs do for 0 to n-1, at most atOnce at a time, and returns when all are done.
func forEach(n, atOnce int, do func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}

// inParallel runs do for all items, some at a time, and joins the errors.
func inParallel[T any](items []T, do func(T) error) error {
	const atOnce = 16
	errs := make([]error, len(items))
	forEach(len(items), atOnce, func(i int) { errs[i] = do(items[i]) })
	return errors.Join(errs...)
}
