package admin

import "testing"

func TestRateLimitText(t *testing.T) {
	for _, tt := range []struct {
		limit RateLimit
		want  string
	}{
		{RateLimit{Key: "Global", Requests: 1, PeriodSeconds: 60, Burst: 1}, "all|Global|1 in 1m0s, 1 at once||Local"},
		{RateLimit{Key: "Header", HeaderName: "X-Api-Key", MaxInFlight: 2, MaxInFlightTotal: 9, QueueLength: 4,
			Verbs: []string{"get", "list"}},
			"get,list|Header X-Api-Key||2 of each key, 9 in all, 4 wait|Local"},
		{RateLimit{Key: "User", APIGroups: []string{"apps"}, Resources: []string{"deployments"},
			Namespaces: []string{"team-a"}, Sharing: &LimitSharing{"Deny", 0}},
			"groups apps deployments in team-a|User|||Shared; else Deny"},
		{RateLimit{Key: "User", Sharing: &LimitSharing{"LocalLimit", 10}},
			"all|User|||Shared, 10 at a time; else LocalLimit"},
	} {
		l := &tt.limit
		if got := l.Matches() + "|" + l.KeyText() + "|" + l.Rate() + "|" + l.InFlight() + "|" +
			l.Scope(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
