package message

// foreign are header fields by which some servers replace what the request line and the connection say. Each
// has its reason to be here: a field that no known server reads belongs to its users.
var foreign = []struct {
	name   string // in lower case
	field  Field
	reason string
}{
	// What is admitted is the path of the request line; these name another one.
	{"x-original-url", FieldTargetOverride, "IIS URL Rewrite; Symfony, Laminas and Drupal took it for the path"},
	{"x-rewrite-url", FieldTargetOverride, "ISAPI_Rewrite; read by the same frameworks"},
	{"x-original-uri", FieldTargetOverride, "services that decide for ingress-nginx read the path from it"},
	{"x-original-path", FieldTargetOverride, "as X-Original-URI, without the query"},
	{"x-envoy-original-path", FieldTargetOverride, "Envoy's path before a rewrite; services behind it authorize by it"},
	{"x-replaced-path", FieldTargetOverride, "Traefik's path before a replacement; the same"},
	{"x-override-url", FieldTargetOverride, "rewriting front ends that keep the client's own"},
	{"x-http-path-override", FieldTargetOverride, "frameworks that have it beside X-HTTP-Method-Override"},
	{"x-http-destinationurl", FieldTargetOverride, "Microsoft's publishing proxies"},
	{"x-script-name", FieldTargetOverride, "WSGI middleware cuts it off the path"},
	{"script-name", FieldTargetOverride, "gunicorn takes SCRIPT_NAME from its proxies"},
	{"path-info", FieldTargetOverride, "gunicorn takes PATH_INFO from its proxies"},

	// Only a proxy can know the client, and X-Forwarded-For is the field in which the gateway
	// itself names it.
	{"true-client-ip", FieldClientAddress, "Akamai, Cloudflare"},
	{"x-client-ip", FieldClientAddress, "Apache's mod_remoteip as its manual sets it up, Azure"},
	{"x-cluster-client-ip", FieldClientAddress, "Rackspace, Riverbed"},
	{"client-ip", FieldClientAddress, "PHP's HTTP_CLIENT_IP; Rails' RemoteIp"},
	{"proxy-client-ip", FieldClientAddress, "Apache's plug-in for WebLogic; Java code reads both"},
	{"wl-proxy-client-ip", FieldClientAddress, "WebLogic"},
	{"cf-connecting-ip", FieldClientAddress, "Cloudflare"},
	{"cf-connecting-ipv6", FieldClientAddress, "Cloudflare"},
	{"fastly-client-ip", FieldClientAddress, "Fastly"},
	{"fly-client-ip", FieldClientAddress, "Fly.io"},
	{"x-appengine-user-ip", FieldClientAddress, "App Engine"},
	{"x-azure-clientip", FieldClientAddress, "Azure Front Door"},
	{"x-azure-socketip", FieldClientAddress, "Azure Front Door"},
	{"x-envoy-external-address", FieldClientAddress, "Envoy"},
	{"x-original-forwarded-for", FieldClientAddress, "ingress-nginx"},
	{"x-proxyuser-ip", FieldClientAddress, "Google's proxies"},
	{"forwarded-for", FieldClientAddress, "code that tries every spelling, after X-Forwarded-For"},
	{"x-forwarded", FieldClientAddress, "the same"},
	{"x-original-host", FieldClientAddress, "Azure Application Gateway's X-Forwarded-Host"},
	{"x-http-host-override", FieldClientAddress, "frameworks that take it for the Host"},
	{"proxy", FieldClientAddress, "CGI's HTTP_PROXY, by which programs choose their proxy (httpoxy)"},
}

// foreignByLength has the fields of foreign at the length of their names.
var foreignByLength = func() (byLength [25][]int) {
	for i, f := range foreign {
		byLength[len(f.name)] = append(byLength[len(f.name)], i)
	}
	return byLength
}()

func foreignField(name []byte) Field {
	if len(name) >= len(foreignByLength) {
		return FieldOther
	}
	for _, i := range foreignByLength[len(name)] {
		if is(name, foreign[i].name) {
			return foreign[i].field
		}
	}
	return FieldOther
}
