package lambda

import "syscall"

// attributes: the kernel kills the function when the stack dies, even of a
// kill -9.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
