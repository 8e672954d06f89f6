package lambda

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

type launch struct {
	cmd  *exec.Cmd
	done chan error
}

// launcher starts every process from one thread that lives as long as the
// program: where the kernel kills children with their parent (see attributes),
// the parent is the thread that started them, not the program.
var launcher = sync.OnceValue(func() chan<- launch {
	requests := make(chan launch)
	go func() {
		runtime.LockOSThread()
		for l := range requests {
			l.done <- l.cmd.Start()
		}
	}()
	return requests
})

// start runs cmd in a process group of its own, so that Ctrl-C in a terminal
// reaches the stack alone and kill reaches the function's own children.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	l := launch{cmd, make(chan error, 1)}
	launcher() <- l
	return <-l.done
}

func killGroup(cmd *exec.Cmd) {
	// The group's id is the process id. It may be gone already, which is as good.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
