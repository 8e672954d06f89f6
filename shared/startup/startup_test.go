package startup

import (
	"runtime"
	"testing"
)

// TestKeepToShare: Go uses the CPUs that the memory pays for, and never more than there were. It changes the process,
// so it isn't parallel.
func TestKeepToShare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for _, c := range []struct {
		memory     string
		have, want int
	}{
		{"128", 2, 1}, {"1769", 2, 1}, {"3537", 6, 1}, {"3538", 6, 2}, {"10240", 6, 5}, {"10240", 2, 2}, {"128", 1, 1},
		{"", 3, 3}, {"lots", 3, 3},
	} {
		runtime.GOMAXPROCS(c.have)
		keepToShare(c.memory)
		if got := runtime.GOMAXPROCS(0); got != c.want {
			t.Errorf("%q MB with %d CPUs: Go uses %d, want %d", c.memory, c.have, got, c.want)
		}
	}
}
