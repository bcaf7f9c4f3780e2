package audit

import "time"

// appendTime appends a time in UTC with microseconds, as Kubernetes' MicroTime: package time takes
// several times as long.
func appendTime(to []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(to, "2006-01-02T15:04:05.000000Z07:00")
	}
	hour, minute, second := t.Clock()
	text := [...]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 26: 'Z'}
	putPair(text[0:2], year/100)
	putPair(text[2:4], year%100)
	putPair(text[5:7], int(month))
	putPair(text[8:10], day)
	putPair(text[11:13], hour)
	putPair(text[14:16], minute)
	putPair(text[17:19], second)
	micros := t.Nanosecond() / 1000
	putPair(text[20:22], micros/10_000)
	putPair(text[22:24], micros/100%100)
	putPair(text[24:26], micros%100)
	return append(to, text[:]...)
}

// putPair writes a number below 100 as two digits.
func putPair(to []byte, n int) {
	tens := n * 103 >> 10
	to[0], to[1] = byte('0'+tens), byte('0'+n-10*tens)
}
