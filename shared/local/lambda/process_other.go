//go:build !linux

package lambda

import "syscall"

// attributes: without the kernel's help a function outlives a stack that was
// killed with -9 only until its poll for an event fails, which is at once.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
