//go:build !linux

package main

import (
	"errors"
	"time"
)

var errLinux = errors.New("the benchmark reads CPU clocks and memory as Linux gives them: run it on Linux, in a virtual machine or a container")

func supported() error                       { return errLinux }
func cpuOf(int) (time.Duration, error)       { return 0, errLinux }
func peakOf(int) (int64, error)              { return 0, errLinux }
func processesOf(string) ([]int, error)      { return nil, errLinux }
func pause(int) error                        { return errLinux }
func resume(int) error                       { return errLinux }
func awaitPause(int)                         {}
func machine() string                        { return "" }
func load() (average string, available bool) { return "", false }
