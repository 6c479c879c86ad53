package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// Load may go to this machine and to the ranges set aside for documentation, which no one else
// answers on: a slip of the pen must not flood a stranger.
var allowedRanges = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
}

func checkAddress(address netip.Addr) error {
	for _, allowed := range allowedRanges {
		if allowed.Contains(address.Unmap()) {
			return nil
		}
	}
	return fmt.Errorf("%s: neither loopback nor a documentation address", address)
}

func checkTarget(target string) error {
	parsed, err := url.Parse(target)
	if err != nil {
		return err
	}
	if parsed.Scheme != "http" || parsed.Hostname() == "" {
		return fmt.Errorf("target %q: want http://host[:port]/path", target)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", parsed.Hostname())
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if err := checkAddress(address); err != nil {
			return fmt.Errorf("target %q: %w", target, err)
		}
	}
	return nil
}

// checkDial sees the address that is really connected to, whatever a name resolves to by then.
func checkDial(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return checkAddress(parsed.Addr())
}

// newClient uses no proxy and follows no redirect, as both lead elsewhere than to the target.
func newClient(timeout time.Duration, noKeepAlive bool) *http.Client {
	dialer := &net.Dialer{Timeout: timeout, Control: checkDial}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			DisableKeepAlives:   noKeepAlive,
			MaxIdleConnsPerHost: 1000,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
