package format

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

var formatNames = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
	"isbn", "isbn10", "isbn13",
	"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "date-time",
	"k8s-short-name", "k8s-long-name",
}

var formatSamples = []string{
	"", "a", "2020-01-02", "2020-02-29", "2021-02-29", "2020-13-01", "2020-00-10", "2020-01-00", "2020-1-2",
	"2020-01-02T03:04:05Z",
	"2020-01-02t03:04:05z", "2020-01-02T03:04:05.123Z", "2020-01-02T03:04:05.Z", "2020-01-02T24:04:05Z",
	"2020-01-02T03:60:05Z", "2020-01-02T03:04:60Z",
	"2020-01-02T03:04:05+01:00", "2020-01-02T03:04:05", "5s", "1h30m", "3 days", "P1D", "10.0.0.1", "010.0.0.1",
	"256.0.0.1", "::1", "::ffff:10.0.0.1",
	"fe80::1%eth0", "10.0.0.0/8", "10.0.0.0/33", "10.0.0.0/08", "::/0", "::ffff:10.0.0.0/104", "1::/129",
	"00:00:5e:00:53:01", "00-00-5e-00-53-01",
	"0000.5e00.5301", "00:00:5e:00:53", "123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000",
	"123e4567-e89b-42d3-a456-426614174000",
	"123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-52d3-a456-426614174000", "aGk=", "aGk", "aGkh", "a===",
	"====", "aG==", "https://example.com/x?y=1",
	"http://example.com:80", "http://example.com:port/", "http://example.com:/", "http://-/", "http://a b/", "/x", "x",
	"http://", "mailto:a@b", "http://[::1]/",
	"http://x/%zz", "a@b.c", "a@b", "a.@b.c", ".a@b.c", "a..b@c", "<a@b.c>", "A B <a@b.c>", "a@[10.0.0.1]", "a@b@c",
	"a@-b", "example.com", "Example.COM",
	"example", "ex-ample.c", "-a.com", "a-.com", "a..com", "a.b1", "1.2.3.4", "a_b.com", "localhost", "ü.com",
	"0-321-75104-1", "978-0321751041",
	"4111 1111 1111 1111", "123-45-6789", "#fff", "#FFFFFF", "rgb(1,2,3)", "rgb(256,2,3)", "507f1f77bcf86cd799439011",
	"a-b", "A", "a.b.c", "-", "\u212a",
}

// VAL-7, VAL-8: formats are as in the registry that apiextensions asks.
func TestFormats(t *testing.T) {
	for _, name := range formatNames {
		f := Of(name)
		if f == nil {
			t.Errorf("%s: not found", name)
			continue
		}
		for _, s := range formatSamples {
			if got, want := f.Matches(s), strfmt.Default.Validates(name, s); got != want {
				t.Errorf("%s of %q: got %v, want %v", name, s, got, want)
			}
		}
	}
	if Of("moon") != nil || Of("int32") != nil || Of("") != nil {
		t.Error("what the registry does not know must not be a format")
	}
}

func FuzzFormats(f *testing.F) {
	for _, s := range formatSamples {
		f.Add(s)
	}
	var all []*Format
	for _, name := range formatNames {
		all = append(all, Of(name))
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, f := range all {
			if got, want := f.Matches(s), strfmt.Default.Validates(f.Name, s); got != want {
				t.Errorf("%s of %q: got %v, want %v", f.Name, s, got, want)
			}
		}
	})
}
