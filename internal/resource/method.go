package resource

// method is an HTTP method.
type method uint8

const (
	methodOther method = iota
	methodGet
	methodHead
	methodPost
	methodPut
	methodPatch
	methodDelete
	methodOptions
)

func methodOf(s string) method {
	switch s {
	case "GET":
		return methodGet
	case "HEAD":
		return methodHead
	case "POST":
		return methodPost
	case "PUT":
		return methodPut
	case "PATCH":
		return methodPatch
	case "DELETE":
		return methodDelete
	case "OPTIONS":
		return methodOptions
	}
	return methodOther
}

// lower is the verb of a path that is no resource.
func (m method) lower() string {
	return [...]string{"", "get", "head", "post", "put", "patch", "delete", VerbOptions}[m]
}
