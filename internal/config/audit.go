package config

import "slices"

// AuditMode says what happens to a request whose events cannot be recorded.
type AuditMode string

// The modes of the audit log.
const (
	// AuditBatch serves the request, and counts the events that are lost.
	AuditBatch AuditMode = "Batch"
	// AuditBlocking refuses the request before anything of it reaches the backend.
	AuditBlocking AuditMode = "Blocking"
)

var auditModes = []AuditMode{AuditBatch, AuditBlocking}

// Audit says where events of audit.k8s.io/v1 go. An audit Policy among the policy files says which
// requests are recorded.
type Audit struct {
	Mode AuditMode `json:"mode"`
	// QueueBytes bounds the events that wait for each of the two sinks.
	QueueBytes int64 `json:"queueBytes"`
	// MaxEventBytes bounds one event. A larger one is recorded without its objects, and with the
	// annotation audit.k8s.io/truncated.
	MaxEventBytes int64 `json:"maxEventBytes"`
	// Log is the file of events; nil for none. Webhook receives them; nil if none does.
	Log     *AuditLog     `json:"log"`
	Webhook *AuditWebhook `json:"webhook"`
}

// AuditLog is a file with an event, or a decision, on each line.
type AuditLog struct {
	// Path is the file; "-" is standard output.
	Path string `json:"path"`
	// MaxSizeMegabytes is the size at which the file is rotated.
	MaxSizeMegabytes int32 `json:"maxSizeMegabytes"`
	// MaxBackups is how many rotated files are kept, and MaxAgeDays for how long; 0 is without bound.
	MaxBackups int32 `json:"maxBackups"`
	MaxAgeDays int32 `json:"maxAgeDays"`
	// Compress compresses rotated files by gzip.
	Compress bool `json:"compress"`
}

// AuditWebhook is a server that takes lists of events.
type AuditWebhook struct {
	// Kubeconfig names the server and has the credentials for it, as for kube-apiserver.
	Kubeconfig string `json:"kubeconfig"`
	// MaxEvents bounds one list, MaxWaitSeconds how long an event waits for others.
	MaxEvents      int32   `json:"maxEvents"`
	MaxWaitSeconds Seconds `json:"maxWaitSeconds"`
	// TimeoutSeconds is for one list.
	TimeoutSeconds Seconds `json:"timeoutSeconds"`
}

func defaultAudit() Audit {
	return Audit{Mode: AuditBatch, QueueBytes: 16 << 20, MaxEventBytes: 1 << 20}
}

func defaultAuditLog() AuditLog { return AuditLog{MaxSizeMegabytes: 100, MaxBackups: 10} }

func defaultAuditWebhook() AuditWebhook {
	return AuditWebhook{MaxEvents: 400, MaxWaitSeconds: 1, TimeoutSeconds: 30}
}

// Sinks returns the names of the places that events go to; none, but not nil, without an audit log.
func (a *Audit) Sinks() []string {
	sinks := []string{}
	if a != nil && a.Log != nil {
		sinks = append(sinks, "log")
	}
	if a != nil && a.Webhook != nil {
		sinks = append(sinks, "webhook")
	}
	return sinks
}

// files are the names of files in a. Standard output is not such a file.
func (a *Audit) files() []*string {
	var names []*string
	if a != nil && a.Log != nil && a.Log.Path != "-" {
		names = append(names, &a.Log.Path)
	}
	if a != nil && a.Webhook != nil {
		names = append(names, &a.Webhook.Kubeconfig)
	}
	return names
}

// audit checks where events go; nil if they go nowhere.
func (v *validator) audit(path string, a *Audit) {
	if a == nil {
		return
	}
	if !slices.Contains(auditModes, a.Mode) {
		v.check(path+".mode", notOneOf(string(a.Mode), auditModes))
	}
	between(v, path+".queueBytes", a.QueueBytes, 1<<20, 1<<30)
	between(v, path+".maxEventBytes", a.MaxEventBytes, 16<<10, a.QueueBytes)
	if a.Log == nil && a.Webhook == nil {
		v.check(path, "Required value: must have `log`, `webhook` or both")
	}
	v.logFile(path+".log", a.Log)
	if w := a.Webhook; w != nil {
		v.required(path+".webhook.kubeconfig", w.Kubeconfig)
		between(v, path+".webhook.maxEvents", w.MaxEvents, 1, 10_000)
		v.within(path+".webhook.maxWaitSeconds", w.MaxWaitSeconds, 0, 300)
		v.within(path+".webhook.timeoutSeconds", w.TimeoutSeconds, 1, 300)
	}
}

// logFile checks a file that is rotated; nil if there is none.
func (v *validator) logFile(path string, l *AuditLog) {
	if l == nil {
		return
	}
	v.required(path+".path", l.Path)
	between(v, path+".maxSizeMegabytes", l.MaxSizeMegabytes, 10, 1<<20)
	between(v, path+".maxBackups", l.MaxBackups, 0, 10_000)
	between(v, path+".maxAgeDays", l.MaxAgeDays, 0, 36_500)
}
