// Package browser runs Chromium in tests: it looks at pages as people see them.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// patience is how long a page may take to become ready. The machine may be busy.
const patience = 2 * time.Minute

// A Browser shows one page at a time. It belongs to one test.
type Browser struct {
	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	session string
	last    int
}

// Start starts Chromium until the test ends. Where it is not installed the test is skipped.
func Start(t *testing.T) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; 'make programs' installs it on Debian")
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// It reads commands from the descriptor 3 and writes answers to 4, so that it needs no port. Tests may run as root,
	// who has no sandbox.
	cmd := exec.Command(program, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{in, out}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), out.Close() // they are the program's now
	b := &Browser{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(func() {
		_ = to.Close() // which ends it
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait() // however it ends
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	b.call("Page.enable", nil, nil)
	return b
}

// call sends a command and waits for its answer.
func (b *Browser) call(method string, parameters map[string]any, into any) {
	b.t.Helper()
	b.last++
	command := map[string]any{"id": b.last, "method": method, "params": parameters}
	if parameters == nil {
		command["params"] = map[string]any{}
	}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	text, err := json.Marshal(command)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		line, err := b.from.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: chromium ended: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line[:len(line)-1], &answer); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		switch {
		case answer.ID != b.last: // an event
		case answer.Error != nil:
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		case into == nil:
			return
		default:
			if err := json.Unmarshal(answer.Result, into); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
			return
		}
	}
}

// Show opens a page in a window of a size, light or dark, and waits until an expression in JavaScript is true on it.
func (b *Browser) Show(url string, width, height int, isDark bool, ready string) {
	b.t.Helper()
	scheme := "light"
	if isDark {
		scheme = "dark"
	}
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.call("Page.navigate", map[string]any{"url": "about:blank"}, nil) // else a change of the fragment loads nothing
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var isReady bool
		b.Evaluate(fmt.Sprintf("location.href !== 'about:blank' && document.readyState === 'complete' && Boolean(%s)", ready), &isReady)
		if isReady {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s does not become ready: %s", url, ready)
		}
	}
}

// Evaluate returns the value of an expression in JavaScript.
func (b *Browser) Evaluate(expression string, into any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true},
		&answer)
	if e := answer.ExceptionDetails; e != nil {
		b.t.Fatalf("%.200s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if err := json.Unmarshal(answer.Result.Value, into); err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
}

// Picture returns the page as a PNG: all of it, or what the window shows.
func (b *Browser) Picture(isWhole bool) []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": isWhole}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// Faults returns what is wrong with how the page looks: text that runs out of its place, and text that is hard to read.
// What scrolls by itself may be wider than its place.
func (b *Browser) Faults() (all []string) {
	b.t.Helper()
	b.Evaluate(faults, &all)
	return all
}

const faults = `(() => {
  const found = [], name = e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + (e.className && e.className.baseVal === undefined ? '.' + e.className : '') + ' ' + JSON.stringify((e.textContent || '').trim().slice(0, 40));
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push('the page is ' + root.scrollWidth + ' wide in a window of ' + root.clientWidth);
  const colour = text => { const n = text.match(/[\d.]+/g).map(Number); return {rgb: n.slice(0, 3), a: n.length > 3 ? n[3] : 1}; };
  const light = rgb => { const l = rgb.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor); if (c.a === 1) return c.rgb; } return [255, 255, 255]; };
  for (const e of document.body.querySelectorAll('*')) {
    const s = getComputedStyle(e);
    if (!e.checkVisibility() || ['SCRIPT', 'STYLE', 'OPTION'].includes(e.tagName)) continue;
    const isField = ['TEXTAREA', 'INPUT', 'SELECT'].includes(e.tagName);
    if (e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && s.overflowX === 'visible' && s.display !== 'inline') found.push(name(e) + ' runs out of its place by ' + (e.scrollWidth - e.clientWidth));
    const hasText = isField || [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!hasText || e.disabled) continue;
    const fore = colour(e instanceof SVGElement ? s.fill : s.color), a = light(fore.rgb), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(s.fontSize);
    const least = size >= 24 || size >= 18.66 && Number(s.fontWeight) >= 700 ? 3 : 4.5;
    if (ratio < least) found.push(name(e) + ' has a contrast of ' + ratio.toFixed(2) + ', ' + s.color);
  }
  return found;
})()`
