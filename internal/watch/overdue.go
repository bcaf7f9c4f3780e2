package watch

import "time"

// Patience is how long a reading of files may take before it is reported: a file system that does not answer, such as
// one behind a network, has the reader wait, and what is read after it is not in force meanwhile.
const Patience = time.Minute

// Overdue has report called once if done has not been called within Patience, in a goroutine of its own. Done waits for
// it to return, and says whether it was called.
func Overdue(report func()) (done func() bool) {
	reported := make(chan struct{})
	timer := time.AfterFunc(Patience, func() {
		defer close(reported)
		report()
	})
	return func() bool {
		if timer.Stop() {
			return false
		}
		<-reported
		return true
	}
}
