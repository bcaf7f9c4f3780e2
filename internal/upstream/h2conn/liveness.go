package h2conn

import "time"

// silentPeriods is after how many of the periods of Config.Ping without a frame a server is asked for a sign of life
// although nothing was sent to it. Servers of gRPC end connections on which more than one ping comes in five minutes.
const silentPeriods = 12

// liveness is what is known of whether the server is there. The connection's lock guards it.
type liveness struct {
	timer   *time.Timer
	heard   uint64 // frames so far
	written uint64 // what had been written when the last one came
	known   uint64 // heard at the last look
	periods int    // of silence
	isAsked bool   // by a PING
}

func (l *liveness) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// hear notes that a frame came.
func (l *liveness) hear(written uint64) {
	l.heard++
	l.written = written
}

// look is called after each period, and after the time for an answer. It reports whether the server is to be asked for
// a sign of life, or gave none although it was. It is asked after most periods of silence although nothing was sent to
// it.
func (l *liveness) look(written uint64, most int) (ask, isDead bool) {
	switch {
	case l.heard != l.known:
		l.known, l.periods, l.isAsked = l.heard, 0, false
	case l.isAsked:
		return false, true
	default:
		l.periods++
		l.isAsked = written != l.written || l.periods >= most
	}
	return l.isAsked, false
}
