package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Lambda gives a function CPU time in proportion to its memory, one whole CPU at 1,769 MB
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html), handed out in periods of 20 ms.
const (
	period = 20 * time.Millisecond
	share  = period * 128 / 1769
)

// quota limits processes to a share of each period.
type quota interface {
	// describe says how, for the report.
	describe() string
	// limit holds a process back until lift is called.
	limit(pid int) (lift func() error, err error)
	close()
}

// newQuota picks the kernel's own limit where a control group can be made, which takes root; signals need no rights.
func newQuota() quota {
	for _, try := range []func() (quota, error){newGroup2, newGroup1} {
		if q, err := try(); err == nil {
			return q
		}
	}
	return signals{}
}

// group is a control group with a CPU quota; processes join it and leave it for its parent.
type group struct {
	dir, parent, version string
}

func (g *group) describe() string {
	return fmt.Sprintf("a control group (%s) of %v in %v", g.version, share.Round(time.Microsecond), period)
}

func newGroup2() (quota, error) {
	const root = "/sys/fs/cgroup"
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(" "+string(controllers)+" ", "cpu ") {
		return nil, errors.New("the cpu controller is not enabled")
	}
	return newGroup(root, "v2", [2]string{"cpu.max", fmt.Sprintf("%d %d", share.Microseconds(), period.Microseconds())})
}

func newGroup1() (quota, error) {
	const root = "/sys/fs/cgroup/cpu"
	return newGroup(root, "v1",
		[2]string{"cpu.cfs_period_us", strconv.FormatInt(period.Microseconds(), 10)},
		[2]string{"cpu.cfs_quota_us", strconv.FormatInt(share.Microseconds(), 10)})
}

func newGroup(root, version string, settings ...[2]string) (quota, error) {
	dir, err := os.MkdirTemp(root, "claimcheck-bench-")
	if err != nil {
		return nil, err
	}
	g := &group{dir, root, version}
	for _, s := range settings {
		if err := os.WriteFile(filepath.Join(dir, s[0]), []byte(s[1]), 0o644); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

func (g *group) limit(pid int) (func() error, error) {
	if err := join(g.dir, pid); err != nil {
		return nil, err
	}
	return func() error { return join(g.parent, pid) }, nil
}

func join(dir string, pid int) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("moving process %d between control groups: %w", pid, err)
	}
	return nil
}

func (g *group) close() { os.Remove(g.dir) }

// signals lets a process run until its CPU clock says that its share of the period is spent, and stops it until the
// next one. What it ran over is taken off the next share, as the kernel does.
type signals struct{}

func (signals) describe() string {
	return fmt.Sprintf("SIGSTOP and SIGCONT after %v of CPU time in %v", share.Round(time.Microsecond), period)
}

func (signals) close() {}

// tooShort is a rest of a share that is not worth waking a process for.
const tooShort = 50 * time.Microsecond

func (signals) limit(pid int) (func() error, error) {
	begin, err := cpuOf(pid)
	if err != nil {
		return nil, err
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		stopped <- ration(pid, begin, stop)
	}()
	return func() error { close(stop); return errors.Join(<-stopped, resume(pid)) }, nil
}

func ration(pid int, spent time.Duration, stop <-chan struct{}) error {
	left := share
	for end := time.Now().Add(period); ; {
		select {
		case <-stop:
			return nil
		default:
		}
		until := time.Until(end)
		if until <= 0 {
			end = end.Add(period)
			left = min(left, 0) + share
			if err := resume(pid); err != nil {
				return err
			}
			continue
		}
		if left < tooShort {
			time.Sleep(until)
			continue
		}
		time.Sleep(min(left, until))
		if err := pause(pid); err != nil {
			return err
		}
		awaitPause(pid)
		now, err := cpuOf(pid)
		if err != nil {
			return nil // it has ended
		}
		left -= now - spent
		spent = now
		if left >= tooShort {
			if err := resume(pid); err != nil {
				return err
			}
		}
	}
}
