package builtin

// A Keeper says who keeps a function to its bound.
type Keeper string

// The keepers.
const (
	// Passes: the function goes once through its operands, and makes nothing.
	Passes Keeper = "one pass"
	// Estimated: what a call takes is asked for before, and no call is made that the budget does not
	// allow for.
	Estimated Keeper = "estimate"
	// Metered: the function is the gateway's own, and asks the budget as it works.
	Metered Keeper = "own"
	// Refused: no module may call it.
	Refused Keeper = "refused"
	// Evaluated: the evaluator does it, in steps that are counted.
	Evaluated Keeper = "steps"
)

// A Contract is what functions of OPA's take at most, and who keeps them to that.
type Contract struct {
	Names []string
	// Takes says the bound in words, by the operands a, b and c.
	Takes string
	Keeper
	// Why says why it is refused, or what differs from OPA's.
	Why string

	cost  func(operands) need
	more  func(operands) need // is asked once there is room for cost
	check func(operands) error
	own   own
	plain int // the operand whose own name is taken out first, from 1
}

const (
	noNetwork     = "policies have no network, but for http.send to the hosts in `allowedHosts`"
	changingTrust = "whether a certificate is trusted changes with the time"
)

// Table returns the contracts of all functions.
func Table() []Contract {
	r := &regexps{plain: plainSteps}
	g := &globs{regexps: r}
	tables := [][]Contract{simple(), numeric(), textual(), patterned(r, g), parsing(), collected(), cryptographic(),
		refused()}
	var all []Contract
	for _, t := range tables {
		all = append(all, t...)
	}
	return all
}

// Refusals are the functions that modules must not call, and why.
func Refusals() map[string]string {
	all := map[string]string{}
	for _, c := range refused() {
		for _, name := range c.Names {
			all[name] = c.Why
		}
	}
	return all
}

func simple() []Contract {
	return []Contract{
		{Names: []string{"eq", "assign", "print"}, Takes: "a comparison", Keeper: Evaluated},
		{
			Names: []string{
				"equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "internal.member_3", "count", "any",
				"all", "max", "min",
				"contains", "startswith", "endswith", "object.get",
			},
			Takes: "no memory; a look at each value in a and b", Keeper: Passes,
		},
		{
			Names: []string{"is_null", "is_boolean", "is_number", "is_string", "is_array", "is_set", "is_object",
				"type_name"},
			Takes: "no memory; one step", Keeper: Passes,
		},
		{
			Names: []string{"cast_null", "cast_boolean", "cast_string", "cast_object", "trace", "time.now_ns",
				"rego.metadata.chain", "rego.metadata.rule"},
			Takes: "256 bytes", Keeper: Estimated, cost: func(operands) need { return need{memory: 256} },
		},
	}
}

func numeric() []Contract {
	return []Contract{
		{
			Names: []string{"plus", "minus", "mul", "div", "rem", "abs", "ceil", "floor", "round", "bits.and",
				"bits.or", "bits.xor", "bits.negate", "bits.rsh", "format_int"},
			Takes: "digits² / 64 steps; 128 bytes a member of sets", Keeper: Estimated,
			cost: func(o operands) need {
				n := calculated(o)
				n.memory = 64 + 8*o.lens()
				if lenOf(o.of[0]) > 0 && o.len(0) == 0 {
					n = members(o)
				}
				return n
			},
		},
		{Names: []string{"bits.lsh"}, Takes: "(digits + shift / 3)² / 64 steps", Keeper: Estimated, cost: shifted},
		{Names: []string{"sum"}, Takes: "digits² / 64 steps a number", Keeper: Estimated, cost: summed},
		{Names: []string{"product"}, Takes: "(all digits)² / 64 steps", Keeper: Estimated, cost: multiplied},
		{Names: []string{"numbers.range", "numbers.range_step"}, Takes: "128 bytes a number", Keeper: Estimated,
			cost: ranged},
		{Names: []string{"to_number"}, Takes: "digits² / 64 steps", Keeper: Estimated, cost: calculated,
			check: oneNumber},
		{Names: []string{"units.parse", "units.parse_bytes"}, Takes: "digits² / 64 steps", Keeper: Estimated,
			cost: amount, check: numbersInAmount},
		{
			Names: []string{"rand.intn", "uuid.rfc4122"}, Takes: "2 bytes a byte, until the evaluation ends",
			Keeper: Estimated,
			cost:   func(o operands) need { return need{steps: 256 + 2*o.lens()} },
		},
	}
}

func textual() []Contract {
	return []Contract{
		{
			Names: []string{
				"lower", "upper", "substring", "strings.reverse", "trim_space", "trim_prefix", "trim_suffix",
				"base64.encode", "base64.decode",
				"base64.is_valid", "base64url.encode", "base64url.encode_no_pad", "base64url.decode", "hex.encode",
				"hex.decode",
				"urlquery.encode", "urlquery.decode", "uri.parse", "uri.is_valid", "strings.count", "glob.quote_meta",
				"semver.compare",
				"semver.is_valid", "uuid.parse", "net.cidr_contains", "net.cidr_overlap", "net.cidr_intersects",
				"net.cidr_is_valid",
			},
			Takes: "16 bytes a byte", Keeper: Estimated,
			cost: func(o operands) need {
				n := linear(16)(o)
				n.memory += 2048
				return n
			},
		},
		{Names: []string{"time.parse_ns", "time.parse_rfc3339_ns"}, Takes: "64 bytes a byte, which the error quotes",
			Keeper: Estimated, cost: linear(64)},
		{
			Names: []string{"time.format", "time.date", "time.clock", "time.weekday", "time.add_date", "time.diff"},
			Takes: "16 bytes a byte; digits² / 64 steps", Keeper: Estimated, cost: dated,
		},
		{Names: []string{"time.parse_duration_ns"}, Takes: "2 KiB a byte", Keeper: Estimated, cost: lasting,
			check: oneNumber},
		{Names: []string{"trim", "trim_left", "trim_right"}, Takes: "a byte's look at each letter of b",
			Keeper: Estimated, cost: trimmed},
		{Names: []string{"concat"}, Takes: "the text that it makes", Keeper: Estimated, cost: joined},
		{Names: []string{"split", "strings.split_n"}, Takes: "128 bytes a part", Keeper: Estimated, cost: parts},
		{Names: []string{"replace"}, Takes: "3 × the text that it makes; (a × b + b²) / 16 steps", Keeper: Estimated,
			cost: replacement},
		{Names: []string{"strings.replace_n"}, Takes: "3 × the text that it makes; 2 KiB a pattern; b × the longest pattern / 4 steps, its square / 16", Keeper: Estimated, cost: replacements},
		{Names: []string{"strings.any_prefix_match", "strings.any_suffix_match"},
			Takes: "2 bytes a byte, 64 bytes a member", Keeper: Estimated, cost: affixes},
		{Names: []string{"sprintf"}, Takes: "3 × the widths, and for each verb the longest value", Keeper: Estimated,
			cost: printed},
		{Names: []string{"internal.print", "internal.template_string"},
			Takes: "4 bytes a byte, for each combination of values", Keeper: Estimated, cost: crossed},
		{Names: []string{"internal.test_case"}, Takes: "4 bytes a byte", Keeper: Estimated, cost: merged},
		{Names: []string{"indexof"}, Takes: "8 bytes a letter beyond ASCII", Keeper: Metered, own: indexes(true)},
		{Names: []string{"indexof_n"}, Takes: "128 bytes a place", Keeper: Metered, own: indexes(false)},
		{Names: []string{"strings.render_template"},
			Takes: "8 KiB an action; all that it prints, and each round of a loop", Keeper: Metered, own: render},
	}
}

func patterned(r *regexps, g *globs) []Contract {
	const program = "192 bytes a byte of the pattern, 256 a step of its program, 32 a step and group; program × text / 4 steps"
	return []Contract{
		{Names: []string{"regex.match", "re_match"}, Takes: program, Keeper: Metered, own: r.match},
		{Names: []string{"regex.is_valid"}, Takes: "192 bytes a byte", Keeper: Metered, own: r.isValid},
		{Names: []string{"regex.find_n"}, Takes: program + "; 128 bytes a match", Keeper: Metered, own: r.find(false)},
		{Names: []string{"regex.find_all_string_submatch_n"}, Takes: program + "; 128 bytes a group", Keeper: Metered,
			own: r.find(true)},
		{Names: []string{"regex.split"}, Takes: program + "; 128 bytes a part", Keeper: Metered, own: r.split},
		{Names: []string{"regex.replace"}, Takes: program + "; 2 × the text that it makes", Keeper: Metered,
			own: r.replace},
		{Names: []string{"regex.template_match"}, Takes: program, Keeper: Metered, own: r.templateMatch},
		{Names: []string{"regex.globs_match"},
			Takes: "160 bytes a byte, 64 a letter of a set, 2 KiB a pair of places with * or +", Keeper: Metered,
			own: globsMatch},
		{Names: []string{"glob.match"}, Takes: program + ", if it has many wildcards", Keeper: Metered, own: g.match},
	}
}

func parsing() []Contract {
	return []Contract{
		{Names: []string{"json.unmarshal"}, Takes: "512 bytes a value, 12 a byte, 2 KiB a level", Keeper: Estimated,
			cost: parsedJSON, check: numbersInJSON},
		{Names: []string{"json.is_valid"}, Takes: "16 bytes a level", Keeper: Estimated, cost: scannedJSON,
			check: numbersInJSON},
		{Names: []string{"json.marshal"}, Takes: "24 bytes a byte", Keeper: Estimated, cost: written},
		{Names: []string{"json.marshal_with_options"}, Takes: "24 bytes a byte, 4 × lines × indent × depth",
			Keeper: Estimated, cost: indented},
		{
			Names:  []string{"yaml.unmarshal", "yaml.is_valid"},
			Takes:  "1 KiB a value, with those that aliases stand for; 4 KiB a level",
			Keeper: Estimated, cost: parsedYAML, more: aliasedYAML, check: numbersInText,
		},
		{Names: []string{"yaml.marshal"}, Takes: "32 bytes a byte, 2 KiB a value, 8 × values × depth",
			Keeper: Estimated, cost: writtenYAML},
		{Names: []string{"urlquery.encode_object"}, Takes: "16 bytes a byte", Keeper: Estimated, cost: queried},
		{Names: []string{"urlquery.decode_object"}, Takes: "512 bytes a parameter, 8 a byte", Keeper: Estimated,
			cost: parameters},
		{Names: []string{"graphql.parse_query"}, Takes: "6 KiB a word, 16 KiB a level", Keeper: Estimated,
			cost: parsedQuery},
		{Names: []string{"graphql.parse_schema"}, Takes: "6 KiB a word, 16 KiB a level", Keeper: Estimated,
			cost: parsedSchema},
		{Names: []string{"graphql.schema_is_valid"}, Takes: "6 KiB a word, 16 KiB a level; words² / 8 steps",
			Keeper: Estimated, cost: checkedSchema},
		{
			Names: []string{"graphql.parse", "graphql.parse_and_verify", "graphql.is_valid"}, Keeper: Estimated,
			cost: checkedQuery, more: comparedFields,
			Takes: "6 KiB a word, 16 KiB a level; (words of the schema)² / 8 and 128 × pairs of fields of one name steps, fragments written out",
		},
		{
			Names: []string{"json.verify_schema"}, Takes: "3 KiB a part, once more for each reference to it",
			Keeper: Estimated, cost: decodedJSON, more: compiled,
			check: checkReferences(0), plain: 1, Why: "no reference leads out of the schema, or to a part that has the reference and is about the same value",
		},
		{
			Names: []string{"json.match_schema"},
			Takes: "3 KiB a part; 4 KiB each time that a part is asked about a value", Keeper: Estimated,
			cost: decodedJSON, more: validated, check: checkReferences(1), plain: 2, Why: "as for `json.verify_schema`",
		},
		{Names: []string{"rego.parse_module"}, Takes: "10 KiB a word, 8 × its line; 512 a byte", Keeper: Estimated,
			cost: parsedModule},
	}
}

func collected() []Contract {
	return []Contract{
		{
			Names: []string{
				"and", "or", "set_diff", "intersection", "array.concat", "array.slice", "array.reverse", "cast_array",
				"cast_set",
				"object.keys", "object.remove", "object.filter",
			},
			Takes: "128 bytes a member", Keeper: Estimated, cost: members,
		},
		{Names: []string{"array.flatten"}, Takes: "64 bytes a member", Keeper: Estimated, cost: flattened},
		{Names: []string{"union"}, Takes: "128 bytes a member", Keeper: Estimated, cost: united},
		{Names: []string{"sort"}, Takes: "64 bytes a member; n × log n comparisons", Keeper: Estimated, cost: sorted},
		{Names: []string{"object.union", "object.union_n"}, Takes: "4 × all that is in them", Keeper: Estimated,
			cost: merged},
		{Names: []string{"object.subset"}, Takes: "32 bytes a member; two comparisons each", Keeper: Metered,
			own: subset},
		{Names: []string{"json.filter", "json.remove"}, Takes: "640 bytes a step of a path, 4 × all that is in a",
			Keeper: Estimated, cost: filtered},
		{
			Names: []string{"json.patch"}, Takes: "4 × all that is in a and b, 640 bytes a step of a path; the longest list for each index; 10,000 levels",
			Keeper: Estimated, cost: patched,
		},
		{Names: []string{"walk"}, Takes: "64 bytes a member, and each path as it comes", Keeper: Estimated,
			cost: walked},
		{Names: []string{"graph.reachable"}, Takes: "128 bytes a node; one look at each edge", Keeper: Metered,
			own: reachable},
		{Names: []string{"graph.reachable_paths"}, Takes: "256 bytes a node of each path", Keeper: Estimated,
			cost: paths},
		{Names: []string{"net.cidr_contains_matches"}, Takes: "512 bytes a pair", Keeper: Estimated, cost: paired},
		{Names: []string{"net.cidr_expand"}, Takes: "320 bytes an address", Keeper: Estimated, cost: hosts},
		{Names: []string{"net.cidr_merge"}, Takes: "1.2 KiB a network; networks² / 32 steps", Keeper: Estimated,
			cost: mergedNetworks},
	}
}

func cryptographic() []Contract {
	verifiers := []string{"io.jwt.decode_verify"}
	for _, method := range []string{"rs", "ps", "es", "hs"} {
		for _, size := range []string{"256", "384", "512"} {
			verifiers = append(verifiers, "io.jwt.verify_"+method+size)
		}
	}
	return []Contract{
		{
			Names: []string{"crypto.md5", "crypto.sha1", "crypto.sha256", "crypto.hmac.md5", "crypto.hmac.sha1",
				"crypto.hmac.sha256", "crypto.hmac.sha512", "crypto.hmac.equal"},
			Takes: "1 KiB; bytes / 8 steps", Keeper: Estimated, cost: digest,
		},
		{
			Names:  []string{"crypto.x509.parse_certificates", "crypto.x509.parse_certificate_request"},
			Takes:  "256 bytes a byte; bytes² / 256 steps",
			Keeper: Estimated, cost: certificates,
		},
		{
			Names: []string{"crypto.x509.parse_rsa_private_key", "crypto.x509.parse_keypair",
				"crypto.parse_private_keys"},
			Takes: "256 bytes a byte; bytes³ / 2048 steps a key", Keeper: Estimated, cost: keys,
		},
		{Names: []string{"io.jwt.decode"}, Takes: "as `json.unmarshal` of its parts", Keeper: Estimated,
			cost: decodedToken, check: numbersInToken},
		{
			Names:  append(verifiers, "io.jwt.verify_eddsa"),
			Takes:  "as `json.unmarshal` of its parts; (bytes of the keys)² / 128 steps",
			Keeper: Estimated, cost: verified, check: numbersInToken,
		},
		{
			Names:  []string{"io.jwt.encode_sign", "io.jwt.encode_sign_raw"},
			Takes:  "32 bytes a byte; (bytes of the longest number of the key)³ / 2048 steps",
			Keeper: Estimated, cost: signed,
		},
	}
}

func refused() []Contract {
	return []Contract{
		{Names: []string{"http.send"}, Takes: "1 MiB an answer, 512 bytes a value in it", Keeper: Refused,
			Why: noNetwork, check: local, cost: sent},
		{Names: []string{"net.lookup_ip_addr"}, Keeper: Refused, Why: noNetwork},
		{Names: []string{"opa.runtime"}, Keeper: Refused,
			Why: "it shows the gateway's environment and configuration to policies"},
		{Names: []string{"providers.aws.sign_req"}, Keeper: Refused,
			Why: "it signs requests, which policies cannot send"},
		{
			Names: []string{"crypto.x509.parse_and_verify_certificates",
				"crypto.x509.parse_and_verify_certificates_with_options"},
			Keeper: Refused, Why: changingTrust,
		},
	}
}
