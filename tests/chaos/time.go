package main

import (
	"context"
	"encoding/binary"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A clock of a schedule: milliseconds since it began, warp times as fast as the machine's. The
// controller has the same by clock.c, and a wall clock that may jump.
type clock struct {
	beginMono, beginWall int64
	warp                 int64
	jump                 atomic.Int64 // ms, of the controller's wall clock
	file                 string
}

func machineMono() int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func newClock(warp int64, file string) (*clock, error) {
	c := &clock{beginMono: machineMono(), beginWall: time.Now().UnixNano(), warp: warp, file: file}
	return c, c.tell(-1)
}

// What clock.c maps. diskAt: no file of the controller grows beyond it; -1 for no limit.
func (c *clock) tell(diskAt int64) error {
	b := make([]byte, 40)
	for i, v := range []int64{c.beginMono, c.beginWall, c.warp, c.jump.Load() * 1e6, diskAt} {
		binary.NativeEndian.PutUint64(b[8*i:], uint64(v))
	}
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(b, 0)
	return err
}

func (c *clock) now() int64 {
	return (machineMono() - c.beginMono) * c.warp / 1e6
}

// The cluster's wall clock, which does not jump, at a time of the schedule.
func (c *clock) wall(ms int64) time.Time {
	return time.Unix(0, c.beginWall+ms*1e6).UTC()
}

func (c *clock) stamp() string {
	return c.wall(c.now()).Format(time.RFC3339)
}

func (c *clock) real(ms int64) time.Duration {
	return time.Duration(ms) * time.Millisecond / time.Duration(c.warp)
}

// False: it ended before.
func (c *clock) sleep(ctx context.Context, ms int64) bool {
	if ms <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(c.real(ms))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
