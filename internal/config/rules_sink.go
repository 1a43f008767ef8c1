package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// sinkRules are about one sink each.
var sinkRules = []Rule{
	{
		"sink-url", "opensearch has an http or https address without a password in it; the other kinds have none.",
		checkSinkURL,
	},
	{
		"sink-auth",
		"Each kind of authentication has what it needs and nothing that it would ignore; passwords travel encrypted.",
		checkSinkAuth,
	},
	{
		"sink-versions", "External versions are not verified on serverless collections, which therefore count as without.",
		checkSinkVersions,
	},
	{
		"sink-settle",
		"A sink without versions applies requests after we hung up: the lease must cover that, or a late write is a " +
			"silent loss.", checkApplyDelay,
	},
	{
		"sink-index", "Two collections in one index would overwrite each other's documents under the same id.",
		checkSinkIndex,
	},
}

// eachSink calls check for every sink, by name, with its path.
func eachSink(c *Config, check func(name, path string, s Sink)) {
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		check(name, "sinks."+printable(name), c.Sinks[name])
	}
}

func checkSinkURL(c *Config, f *checker) {
	eachSink(c, func(_, path string, s Sink) {
		const fix = "write an address such as https://search.example.org"
		if s.Kind != SinkOpenSearch {
			if s.URL != "" {
				f.fault(path+".url", s.URL, "would be ignored: the kind "+string(s.Kind)+" lives in the process",
					"remove it, or set "+path+".kind to opensearch")
			}
			return
		}
		u, err := url.Parse(s.URL)
		switch {
		case s.URL == "":
			f.fault(path+".url", nil, "is missing", fix)
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			f.fault(path+".url", s.URL, "is no http or https address", fix)
		case u.User != nil:
			f.fault(path+".url", s.URL, "has a user or password in it, which would reach logs",
				"remove them and use "+path+".auth with kind: basic")
		case u.RawQuery != "" || u.Fragment != "":
			f.fault(path+".url", s.URL, "has a query or fragment, which would be lost", "end it after the path")
		}
	})
}

// checkSinkAuth holds auth to its kind, in the order of its settings.
func checkSinkAuth(c *Config, f *checker) {
	eachSink(c, func(_, path string, s Sink) {
		a, auth := s.Auth, path+".auth"
		if a.Kind != AuthNone && s.Kind != SinkOpenSearch {
			f.fault(auth+".kind", string(a.Kind), "would be ignored: the kind "+string(s.Kind)+" lives in the process",
				"write none")
		}
		for _, o := range []struct {
			name, value string
			kind        AuthKind
		}{
			{"secretARN", a.SecretARN, AuthBasic},
			{"userEnv", a.UserEnv, AuthBasic},
			{"passwordEnv", a.PasswordEnv, AuthBasic},
			{"region", a.Region, AuthSigV4},
			{"service", a.Service, AuthSigV4},
		} {
			if o.value != "" && a.Kind != o.kind {
				f.fault(auth+"."+o.name, o.value, "would be ignored: it belongs to the kind "+string(o.kind),
					"remove it, or set "+auth+".kind to "+string(o.kind))
			}
		}
		if a.Kind == AuthBasic {
			checkBasic(f, auth, s)
		}
		if a.Kind == AuthSigV4 && (a.Service == "aoss") != s.Serverless {
			f.fault(auth+".service", a.Service, "does not fit serverless: "+fmt.Sprint(s.Serverless),
				"write es for a domain, aoss for a serverless collection")
		}
	})
}

func checkBasic(f *checker, auth string, s Sink) {
	a := s.Auth
	env := a.UserEnv != "" || a.PasswordEnv != ""
	switch {
	case a.SecretARN != "" && env:
		f.fault(auth+".secretARN", a.SecretARN, "is set beside userEnv or passwordEnv",
			"keep the secret or the two variables")
	case a.SecretARN == "" && !env:
		f.fault(auth+".secretARN", nil, "is missing", "write the ARN of the secret, or both "+auth+".userEnv and "+auth+
			".passwordEnv")
	case a.SecretARN == "" && a.UserEnv == "":
		f.fault(auth+".userEnv", nil, "is missing beside passwordEnv",
			"write the name of the variable that holds the user")
	case a.SecretARN == "" && a.PasswordEnv == "":
		f.fault(auth+".passwordEnv", nil, "is missing beside userEnv",
			"write the name of the variable that holds the password")
	}
	if u, err := url.Parse(s.URL); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
		f.fault(auth+".kind", string(a.Kind), "would send the password in the clear", "use https in the sink's url")
	}
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func checkSinkVersions(c *Config, f *checker) {
	eachSink(c, func(_, path string, s Sink) {
		if s.Serverless && s.Kind != SinkOpenSearch {
			f.fault(path+".serverless", true, "does not exist for the kind "+string(s.Kind), "remove it")
		}
		if s.Serverless && s.Versions != nil && *s.Versions {
			f.fault(path+".versions", true, "cannot be relied on with serverless: true",
				"remove it: a serverless collection counts as a sink without versions")
		}
	})
}

func checkApplyDelay(c *Config, f *checker) {
	eachSink(c, func(_, path string, s Sink) {
		if !s.HasVersions() && s.Delay() < minSettle {
			f.fault(path+".applyDelay", s.Delay(),
				"is too short for a sink without versions: a write that lands after the lease is a silent loss",
				"remove it for "+FormatDuration(settleWithoutVersions)+", or raise it to at least "+
					FormatDuration(minSettle))
		}
	})
}

func checkSinkIndex(c *Config, f *checker) {
	eachSink(c, func(name, path string, s Sink) {
		if strings.Contains(s.Index, "{collection}") {
			return
		}
		var users []string
		for _, collection := range slices.Sorted(maps.Keys(c.Collections)) {
			if to, _ := c.SinkFor(collection); to == name {
				users = append(users, printable(collection))
			}
		}
		if len(users) > 1 {
			f.fault(path+".index", s.Index, "is one index for the collections "+strings.Join(users, ", "),
				"put {collection} into the name, such as "+s.Index+"-{collection}")
		}
	})
}
