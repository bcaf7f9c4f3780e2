package config

// assumeDialect gives an upstream without a dialect the one that its kind of address suggests.
func (u *UpstreamSpec) assumeDialect() {
	switch {
	case u.Dialect != "":
	case u.Kubeconfig != "":
		u.Dialect = Kubernetes
	default:
		u.Dialect, u.isAssumed = Plain, true
	}
}

// sayDialect sets the dialect.
func (u *UpstreamSpec) sayDialect(d Dialect) { u.Dialect, u.isAssumed = d, false }

// AssumesDialect reports whether the dialect is an assumption, which the backend's own answer may prove wrong.
func (u *UpstreamSpec) AssumesDialect() bool { return u.isAssumed }
