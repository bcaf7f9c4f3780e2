package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DecisionLogs says where decisions of policies in Rego and of constraints go, in OPA's form.
type DecisionLogs struct {
	// Service takes them by OPA's protocol; nil if none does. Log is a file of them; nil for none.
	Service *DecisionService `json:"service"`
	Log     *AuditLog        `json:"log"`
	// Labels are on each of them.
	Labels map[string]string `json:"labels"`
	// MaskBundle is the bundle whose rules data.system.log.mask and data.system.log.drop say what is
	// shown; empty: nothing is masked beside what is withheld of Secrets.
	MaskBundle string `json:"maskBundle"`
	// QueueBytes bounds what waits for the rules, and for each of the two sinks.
	QueueBytes int64 `json:"queueBytes"`
	// MaxEventBytes bounds a decision. A larger one is logged without its input.
	MaxEventBytes int64 `json:"maxEventBytes"`
}

// DecisionService is a service that takes decision logs of OPA.
type DecisionService struct {
	// URL is the service, Partition a part of it; decisions are posted to URL/logs or URL/logs/PARTITION.
	URL       string `json:"url"`
	Partition string `json:"partition"`
	// TokenFile holds the bearer token for it; empty if there is none.
	TokenFile string `json:"tokenFile"`
	// TLS is how it is known, and what is shown to it; nil means the authorities of the system.
	TLS *UpstreamTLS `json:"tls"`
	// MinDelaySeconds and MaxDelaySeconds are the least and the longest time that decisions wait for
	// others.
	MinDelaySeconds Seconds `json:"minDelaySeconds"`
	MaxDelaySeconds Seconds `json:"maxDelaySeconds"`
	// TimeoutSeconds bounds an answer.
	TimeoutSeconds Seconds `json:"timeoutSeconds"`
	// UploadSizeLimitBytes bounds a body, which is compressed.
	UploadSizeLimitBytes int64 `json:"uploadSizeLimitBytes"`
}

func defaultDecisionLogs() DecisionLogs {
	return DecisionLogs{QueueBytes: 16 << 20, MaxEventBytes: 1 << 20}
}

func defaultDecisionService() DecisionService {
	return DecisionService{MinDelaySeconds: 5, MaxDelaySeconds: 10, TimeoutSeconds: 30, UploadSizeLimitBytes: 32 << 10}
}

// files are the names of files in d. Standard output is not such a file.
func (d *DecisionLogs) files() []*string {
	if d == nil {
		return nil
	}
	names := (&Audit{Log: d.Log}).files()
	if d.Service != nil {
		names = append(append(names, &d.Service.TokenFile), d.Service.TLS.files()...)
	}
	return names
}

// decisionLogs checks where decisions go; nil if they go nowhere.
func (v *validator) decisionLogs(path string, d *DecisionLogs, bundles []Bundle) {
	if d == nil {
		return
	}
	if d.Service == nil && d.Log == nil {
		v.check(path, "Required value: must have `service`, `log` or both")
	}
	between(v, path+".queueBytes", d.QueueBytes, 1<<20, 1<<30)
	between(v, path+".maxEventBytes", d.MaxEventBytes, 16<<10, d.QueueBytes)
	if d.MaskBundle != "" && !slices.ContainsFunc(bundles, func(b Bundle) bool { return b.Name == d.MaskBundle }) {
		v.check(path+".maskBundle", fmt.Sprintf("must be the name of one of `bundles`, not '%s'", d.MaskBundle))
	}
	v.logFile(path+".log", d.Log)
	if s := d.Service; s != nil {
		v.decisionService(path+".service", s)
	}
}

func (v *validator) decisionService(path string, s *DecisionService) {
	v.check(path+".url", endpointProblem(s.URL))
	if s.Partition != "" {
		if problems := validation.IsDNS1123Subdomain(s.Partition); len(problems) > 0 {
			v.check(path+".partition", problems[0])
		}
	}
	switch {
	case scheme(s.URL) == "https" && s.TLS != nil:
		v.clientTLS(path+".tls", s.TLS)
	case s.TLS != nil:
		v.check(path+".tls", fmt.Sprintf("must not be set unless `%s.url` has the scheme 'https'", path))
	}
	v.within(path+".minDelaySeconds", s.MinDelaySeconds, 0, maxSeconds)
	v.within(path+".maxDelaySeconds", s.MaxDelaySeconds, 1, maxSeconds)
	if s.MaxDelaySeconds < s.MinDelaySeconds {
		v.check(path+".maxDelaySeconds",
			fmt.Sprintf("must be greater than or equal to `%s.minDelaySeconds`, which is %d", path, s.MinDelaySeconds))
	}
	v.within(path+".timeoutSeconds", s.TimeoutSeconds, 1, 3600)
	between(v, path+".uploadSizeLimitBytes", s.UploadSizeLimitBytes, 1<<10, 1<<30)
}
