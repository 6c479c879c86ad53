package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// One run of the controller, from its start to its end.
type life struct {
	Name         string
	Began, Ended int64
	Why          string // it ended
	Expected     bool   // by us, or as documented
	PeakKiB      int64
}

// A controller and its supervisor, which starts it anew when it ends, as Kubernetes does.
type controller struct {
	name    string
	args    []string
	config  func(life string) []byte // a kubeconfig, by whose token a writer is known
	env     []string
	dir     string
	clock   *clock
	random  *rand.Rand
	mu      sync.Mutex
	lives   []life
	process *os.Process
	why     string // it is to end now
	limited bool
}

func (c *controller) journal() string { return filepath.Join(c.dir, c.name+".journal") }

func (c *controller) start(program string) (*exec.Cmd, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fmt.Sprintf("%s-%d", c.name, len(c.lives)+1)
	config := filepath.Join(c.dir, name+".kubeconfig")
	if err := os.WriteFile(config, c.config(name), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append(c.args, "--identity="+name, "--kubeconfig="+config, "--journal="+c.journal())...)
	output, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr, cmd.Env = output, output, append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.process, c.why, c.limited = cmd.Process, "", false
	c.lives = append(c.lives, life{Name: name, Began: c.clock.now()})
	return cmd, nil
}

func (c *controller) ended(cmd *exec.Cmd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.lives[len(c.lives)-1]
	l.Ended, l.PeakKiB = c.clock.now(), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	l.Why, l.Expected = c.why, c.why != ""
	c.process = nil
	if l.Expected {
		return
	}
	l.Why = cmd.ProcessState.String()
	log, _ := os.ReadFile(filepath.Join(c.dir, l.Name+".log"))
	lost := strings.Contains(string(log), "no longer leads")
	l.Expected = (lost && cmd.ProcessState.ExitCode() == 1) || (c.limited && (strings.Contains(string(log), "out of memory") || !strings.Contains(string(log), "msg=started")))
	if l.Expected {
		l.Why = "out of memory"
		if lost {
			l.Why = "lease lost"
		}
	}
}

// Runs it until ctx ends, and then asks it to end.
func (c *controller) run(ctx context.Context, program string) error {
	for ctx.Err() == nil {
		cmd, err := c.start(program)
		if err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case <-done:
		case <-ctx.Done():
			c.stop(cmd, done)
		}
		c.ended(cmd)
		c.clock.sleep(ctx, 500+c.random.Int64N(1500))
	}
	return nil
}

// A second of the machine's is long enough to end.
func (c *controller) stop(cmd *exec.Cmd, done chan error) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
		if cmd.ProcessState.ExitCode() == 0 || c.hadNoTime(cmd) {
			c.say("asked to end")
		}
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		<-done
	}
}

// Who is asked to end before it has begun to listen just ends.
func (c *controller) hadNoTime(cmd *exec.Cmd) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signaled() && status.Signal() == syscall.SIGTERM && c.clock.now()-c.lives[len(c.lives)-1].Began < 10000
}

func (c *controller) say(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = why
}

func (c *controller) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		c.why = "SIGKILL"
		_ = c.process.Kill()
	}
}

// From now on it gets so much more memory, and then no more.
func (c *controller) limitMemory(more uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return
	}
	var pages uint64
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.process.Pid))
	_, _ = fmt.Sscan(string(status), &pages)
	c.limited = true
	setLimit(c.process.Pid, pages*uint64(os.Getpagesize())+more)
}

func (c *controller) freeMemory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil && c.limited {
		setLimit(c.process.Pid, ^uint64(0))
	}
}

func setLimit(pid int, bytes uint64) {
	limit := [2]uint64{bytes, ^uint64(0)}
	syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_AS, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
}
