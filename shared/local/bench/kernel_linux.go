package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// supported says what is missing on this system, nil when all of the benchmark can run.
func supported() error { return nil }

// cpuOf is the CPU time, user and system, of all threads of a process since it was forked.
func cpuOf(pid int) (time.Duration, error) {
	// The clock of another process, as clock_getcpuclockid(3) makes its id: the scheduler's own count.
	const scheduler = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &at); err != nil {
		return 0, fmt.Errorf("reading the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// peakOf is the most memory a process has had resident, in bytes.
func peakOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell the memory of process %d", pid)
}

// processesOf lists the processes that run a program.
func processesOf(program string) ([]int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == program {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func send(pid int, s unix.Signal) error {
	if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signalling process %d: %w", pid, err)
	}
	return nil
}

func pause(pid int) error  { return send(pid, unix.SIGSTOP) }
func resume(pid int) error { return send(pid, unix.SIGCONT) }

// awaitPause waits until a child that was told to pause has: its threads may run on for a moment, and the time of a thread
// that runs is not on the clock yet. A child that ended instead is not waited for.
func awaitPause(pid int) {
	for begin := time.Now(); time.Since(begin) < 10*time.Millisecond; time.Sleep(10 * time.Microsecond) {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
		if err != nil || info.Signo != 0 {
			return
		}
	}
}

// machine describes where the figures come from.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return model
}

// load is the number of runnable processes, averaged over a minute, and whether the kernel tells.
func load() (string, bool) {
	text, err := os.ReadFile("/proc/loadavg")
	average, _, found := strings.Cut(string(text), " ")
	return average, err == nil && found
}
