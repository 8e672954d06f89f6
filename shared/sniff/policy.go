package sniff

import "context"

// Policy is Check in the form that package files asks for.
func Policy(ctx context.Context, declared string, head []byte, size int64, tail func(ctx context.Context, n int64) ([]byte, error)) (detected string, ok bool, err error) {
	r, err := Check(ctx, declared, head, size, tail)
	return r.Detected, r.OK, err
}
